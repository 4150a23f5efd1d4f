// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/model"
)

// open opens a directory and keeps it up to date until the test's end.
func open(t *testing.T, dir string) (*Directory, <-chan struct{}) {
	t.Helper()
	d, err := OpenDirectory(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	changed := d.Changed()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return d, changed
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in 10 seconds: %s", what)
		}
	}
}

func services(d *Directory) string {
	snapshot, _ := d.Snapshot()
	var names []string
	for _, service := range snapshot.Services {
		names = append(names, service.Name)
	}
	return strings.Join(names, " ")
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryIsASnapshot(t *testing.T) {
	clusterIP := strings.NewReplacer("type: LoadBalancer", "type: ClusterIP", "name: web", "name: inside").Replace(serviceWeb)
	headless := strings.NewReplacer("name: web-1", "name: web-2", "service-name: web", `service-name: web, service.kubernetes.io/headless: ""`).Replace(sliceWeb)
	d, _ := open(t, writeFiles(t, map[string]string{"all.yaml": strings.Join([]string{serviceWeb, sliceWeb, nodeA, clusterIP, headless}, "---\n")}))
	got, ok := d.Snapshot()
	want := model.Snapshot{
		Services: []*model.Service{{
			ObjectKey: model.ObjectKey{Namespace: "default", Name: "web"}, UID: "Service default/web",
			IPFamilies: []model.Family{model.IPv4}, Ports: []model.ServicePort{{Name: "http", Proto: model.TCP, Port: 80}},
		}},
		Slices: []*model.Slice{{
			ObjectKey: model.ObjectKey{Namespace: "default", Name: "web-1"}, Service: "web", Family: model.IPv4,
			Ports:     []model.SlicePort{{Name: "http", Proto: model.TCP, Port: 8080}},
			Endpoints: []model.SliceEndpoint{{Addr: parseAddr("10.42.1.5"), Node: "a"}},
		}},
		Nodes: []*model.Node{{Name: "a", UID: "Node a", InternalIPs: addrs("192.0.2.1"), PodCIDRs: prefixes("10.42.1.0/24")}},
	}
	if diff := cmp.Diff(want, got, comparers); !ok || diff != "" {
		t.Errorf("complete %v, (-want +got):\n%s", ok, diff)
	}
}

func TestADirectoryIsReadAgainWhenItChanges(t *testing.T) {
	dir := writeFiles(t, map[string]string{"web.yaml": serviceWeb})
	d, changed := open(t, dir)
	shop := strings.Replace(serviceWeb, "name: web", "name: shop", 1)
	write(t, filepath.Join(dir, "shop.yaml"), shop)
	eventually(t, "shop is there", func() bool { return services(d) == "shop web" })
	select {
	case <-changed:
	case <-time.After(time.Second):
		t.Error("nobody was told")
	}
	// An editor that renames, and a file that goes.
	write(t, filepath.Join(dir, ".new"), strings.Replace(serviceWeb, "name: web", "name: news", 1))
	if err := os.Rename(filepath.Join(dir, ".new"), filepath.Join(dir, "web.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "web is replaced", func() bool { return services(d) == "shop news" })
	if err := os.Remove(filepath.Join(dir, "shop.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "shop is gone", func() bool { return services(d) == "news" })
}

func TestAWrongDirectoryLeavesTheLastGoodState(t *testing.T) {
	dir := writeFiles(t, map[string]string{"web.yaml": serviceWeb})
	d, _ := open(t, dir)
	write(t, filepath.Join(dir, "web.yaml"), strings.Replace(serviceWeb, "port: 80", "port: [", 1))
	write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(serviceWeb, "name: web", "name: shop", 1))
	eventually(t, "the fault is known", func() bool { return d.Fault() != nil })
	if got := services(d); got != "web" {
		t.Errorf("%q is in force, want what was there before", got)
	}
	if text := d.Fault().Error(); !regexp.MustCompile(`^web\.yaml:[67] \(document 1\): `).MatchString(text) {
		t.Errorf("the fault does not say where: %s", text)
	}
	write(t, filepath.Join(dir, "web.yaml"), serviceWeb)
	eventually(t, "all is well", func() bool { return services(d) == "shop web" && d.Fault() == nil })
}

func TestADirectoryThatIsReadToTheSameTellsNobody(t *testing.T) {
	dir := writeFiles(t, map[string]string{"web.yaml": serviceWeb})
	_, changed := open(t, dir)
	write(t, filepath.Join(dir, "web.yaml"), "# the same\n"+serviceWeb)
	write(t, filepath.Join(dir, "a"+StatusSuffix), "status")
	select {
	case <-changed:
		t.Error("told of a change")
	case <-time.After(3 * settle):
	}
}

func TestADirectoryThatIsWrongAtFirstIsRefused(t *testing.T) {
	for name, dir := range map[string]string{
		"malformed": writeFiles(t, map[string]string{"a.yaml": "["}),
		"missing":   filepath.Join(t.TempDir(), "gone"),
	} {
		if _, err := OpenDirectory(dir, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}
