// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/transcript"
)

// TestCluster watches a real API server.
func TestCluster(t *testing.T) {
	control := kube.Start(t, kube.Options{})
	s := &server{t, control}
	s.do("create node a", func(ctx context.Context) error {
		_, err := control.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		return err
	})
	t.Run("what is there is in the first Snapshot, and what changes in the next", s.testChanges)
	t.Run("a heartbeat of a Node tells nobody", s.testHeartbeat)
	t.Run("nothing is known before the last of the three lists", s.testGate)
	t.Run("no Service, and fronts in the maps: a second read decides", s.testNoService)
	t.Run("without this node", s.testOwnNodeMissing)
}

type server struct {
	*testing.T
	*kube.ControlPlane
}

func (s *server) do(what string, request func(context.Context) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := request(ctx); err != nil {
		s.Fatalf("%s: %v", what, err)
	}
}

// tamper changes requests on their way.
type tamper struct {
	http.RoundTripper
	change func(*http.Request)
}

func (p tamper) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	p.change(request)
	return p.RoundTripper.RoundTrip(request)
}

// watch runs a Cluster until the test's end. change, if there is one, is made to every request.
func (s *server) watch(t *testing.T, expect Expectations, change func(*http.Request)) (*Cluster, <-chan struct{}, *transcript.Transcript) {
	t.Helper()
	config, err := s.Config("beep", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return tamper{next, change} }
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if expect.Serving == nil {
		expect.Serving = func() bool { return false }
	}
	log := &transcript.Transcript{}
	c := NewCluster(client, expect, slog.New(slog.NewTextHandler(log, nil)))
	changed := c.Changed()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return c, changed, log
}

// words are a Snapshot in a line.
func words(c *Cluster) string {
	snapshot, ok := c.Snapshot()
	if !ok {
		return "incomplete"
	}
	var list []string
	for _, service := range snapshot.Services {
		list = append(list, "service/"+service.Name)
	}
	for _, slice := range snapshot.Slices {
		if slice.Namespace == "default" && slice.Name != "kubernetes" {
			list = append(list, fmt.Sprintf("slice/%s=%s:%d", slice.Name, slice.Service, len(slice.Endpoints)))
		}
	}
	for _, node := range snapshot.Nodes {
		list = append(list, "node/"+node.Name)
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

func wantWords(t *testing.T, c *Cluster, want string) {
	t.Helper()
	for deadline := time.Now().Add(15 * time.Second); words(c) != want; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%q, want %q", words(c), want)
		}
	}
}

func (s *server) testChanges(t *testing.T) {
	core, slicesOf := s.Client.CoreV1(), s.Client.DiscoveryV1().EndpointSlices("default")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
	inside := service.DeepCopy()
	inside.Name, inside.Spec.Type = "inside", corev1.ServiceTypeClusterIP
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{labelService: "web"}},
		AddressType: "IPv4", Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.42.1.5"}}}}
	for _, object := range []*corev1.Service{service, inside} {
		s.do("create service", func(ctx context.Context) error {
			_, err := core.Services("default").Create(ctx, object, metav1.CreateOptions{})
			return err
		})
	}
	s.do("create slice", func(ctx context.Context) (err error) {
		slice, err = slicesOf.Create(ctx, slice, metav1.CreateOptions{})
		return err
	})
	c, _, _ := s.watch(t, Expectations{Node: "a"}, nil)
	wantWords(t, c, "node/a service/web slice/web-1=web:1")

	s.do("the slice's label changes", func(ctx context.Context) (err error) {
		slice.Labels[labelService] = "shop"
		slice, err = slicesOf.Update(ctx, slice, metav1.UpdateOptions{})
		return err
	})
	wantWords(t, c, "node/a service/web slice/web-1=shop:1")
	s.do("the slice becomes headless", func(ctx context.Context) (err error) {
		slice.Labels[labelHeadless] = ""
		slice, err = slicesOf.Update(ctx, slice, metav1.UpdateOptions{})
		return err
	})
	wantWords(t, c, "node/a service/web")
	retype := func(to corev1.ServiceType) {
		s.do("the type changes", func(ctx context.Context) error {
			now, err := core.Services("default").Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Spec.Type = to
			_, err = core.Services("default").Update(ctx, now, metav1.UpdateOptions{})
			return err
		})
	}
	retype(corev1.ServiceTypeClusterIP)
	wantWords(t, c, "node/a")
	retype(corev1.ServiceTypeLoadBalancer)
	wantWords(t, c, "node/a service/web")
	s.do("delete all", func(ctx context.Context) error {
		if err := slicesOf.Delete(ctx, "web-1", metav1.DeleteOptions{}); err != nil {
			return err
		}
		if err := core.Services("default").Delete(ctx, "inside", metav1.DeleteOptions{}); err != nil {
			return err
		}
		return core.Services("default").Delete(ctx, "web", metav1.DeleteOptions{})
	})
	wantWords(t, c, "node/a")
}

func (s *server) testHeartbeat(t *testing.T) {
	c, changed, _ := s.watch(t, Expectations{Node: "a"}, nil)
	wantWords(t, c, "node/a")
	for quiet := false; !quiet; {
		select {
		case <-changed:
		case <-time.After(300 * time.Millisecond):
			quiet = true
		}
	}
	status := func(address string) {
		s.do("post the status of node a", func(ctx context.Context) error {
			node, err := s.Client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			node.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastHeartbeatTime: metav1.Now()}}
			node.Status.Addresses = []corev1.NodeAddress{{Type: "InternalIP", Address: address}}
			_, err = s.Client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
			return err
		})
	}
	status("192.0.2.1")
	<-changed
	status("192.0.2.1")
	select {
	case <-changed:
		t.Error("told of a heartbeat")
	case <-time.After(500 * time.Millisecond):
	}
}

func (s *server) testGate(t *testing.T) {
	var open atomic.Bool
	c, _, _ := s.watch(t, Expectations{Node: "a"}, func(request *http.Request) {
		for strings.HasSuffix(request.URL.Path, "/endpointslices") && !open.Load() && request.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
	})
	time.Sleep(time.Second)
	if got := words(c); got != "incomplete" {
		t.Errorf("without slices it is %q", got)
	}
	open.Store(true)
	wantWords(t, c, "node/a")
}

// testNoService lies once: the first list of Services is empty, and the second read is not.
func (s *server) testNoService(t *testing.T) {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
	s.do("create service", func(ctx context.Context) error {
		_, err := s.Client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
		return err
	})
	var asked atomic.Int32
	c, _, log := s.watch(t, Expectations{Node: "a", Serving: func() bool { return true }}, func(request *http.Request) {
		if strings.HasSuffix(request.URL.Path, "/services") && asked.Add(1) == 1 {
			query := request.URL.Query()
			query.Set("fieldSelector", "metadata.name=nobody")
			request.URL.RawQuery = query.Encode()
		}
	})
	eventually(t, "the list is held back", func() bool { return strings.Contains(log.String(), "none is left, and the maps hold fronts") })
	if got := words(c); got != "incomplete" {
		t.Errorf("a list that is held back is %q", got)
	}
	wantWords(t, c, "node/a service/web")
	s.do("delete service", func(ctx context.Context) error {
		return s.Client.CoreV1().Services("default").Delete(ctx, "web", metav1.DeleteOptions{})
	})

	// And now it is true.
	c, _, _ = s.watch(t, Expectations{Node: "a", Serving: func() bool { return true }}, nil)
	wantWords(t, c, "node/a")
}

func (s *server) testOwnNodeMissing(t *testing.T) {
	c, _, log := s.watch(t, Expectations{Node: "b"}, nil)
	eventually(t, "the list is held back", func() bool { return strings.Contains(log.String(), "this node, b, is not among them") })
	wantWords(t, c, "node/a")
	if !strings.Contains(log.String(), "confirmed by the second read") {
		t.Errorf("log: %s", log)
	}
}
