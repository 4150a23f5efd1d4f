// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const (
	serviceWeb = `apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  ports:
  - {name: http, port: 80}
`
	sliceWeb = `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.42.1.5], nodeName: a}]
`
	nodeA = `apiVersion: v1
kind: Node
metadata: {name: a}
spec: {podCIDRs: [10.42.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
`
)

// writeFiles makes a directory of the files.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestManifestsAreReadWithTheDefaultsOfAnAPIServer(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml":              "# all of it\n---\n" + serviceWeb + "---\n# nothing\n---\n" + sliceWeb + "--- \n" + nodeA,
		"b.yml":               strings.Replace(serviceWeb, "{name: web}", "{name: dual, namespace: shop}\n", 1) + "  ipFamilyPolicy: PreferDualStack\n",
		"list.yaml":           "apiVersion: v1\nkind: List\nitems:\n- " + strings.ReplaceAll(strings.Replace(nodeA, "name: a", "name: b", 1), "\n", "\n  ") + "\n",
		"read-me.txt":         "no manifest",
		".hidden.yaml":        "{{{",
		"a" + StatusSuffix:    "{{{",
		"directory.yaml.orig": "{{{",
	})
	m, err := readManifests(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.services) != 2 || len(m.slices) != 1 || len(m.nodes) != 2 {
		t.Fatalf("%d services, %d slices, %d nodes", len(m.services), len(m.slices), len(m.nodes))
	}
	web, dual := m.services[0], m.services[1]
	if web.Namespace != "default" || web.UID == "" || web.Spec.Ports[0].Protocol != corev1.ProtocolTCP ||
		!slices.Equal(web.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv4Protocol}) {
		t.Errorf("web: %+v", web)
	}
	if !slices.Equal(dual.Spec.IPFamilies, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}) {
		t.Errorf("dual: %v", dual.Spec.IPFamilies)
	}
	if got := *m.slices[0].Ports[0].Protocol; got != corev1.ProtocolTCP {
		t.Errorf("slice: protocol %v", got)
	}
}

func TestWrongManifestsAreNamedByFileLineAndDocument(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"no YAML", "---\n" + serviceWeb + "---\na: b\nc: [\n", `x.yaml:11 (document 2): `},
		{"a field of another type", nodeA + "---\n" + strings.Replace(serviceWeb, "port: 80", "port: eighty", 1),
			"x.yaml:6 (document 2): Service: "},
		{"a field that is not there", strings.Replace(serviceWeb, "ports:", "prots:", 1), `x.yaml:1 (document 1): Service: `},
		{"a key twice", serviceWeb + "kind: Service\n", `x.yaml:8 (document 1): `},
		{"another kind", "apiVersion: apps/v1\nkind: Deployment\n", `x.yaml:1 (document 1): apiVersion "apps/v1", kind "Deployment": want a v1 Service`},
		{"no kind", "hello: world\n", `x.yaml:1 (document 1): apiVersion "", kind "": want`},
		{"no name", "apiVersion: v1\nkind: Node\n", `x.yaml:1 (document 1): Node without metadata.name`},
		{"twice", serviceWeb + "---\n" + strings.Replace(serviceWeb, "name: web", "name: web, namespace: default", 1),
			`x.yaml:8 (document 2): Service default/web is also at x.yaml:1 (document 1)`},
		{"twice in a List", nodeA + "---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n",
			`item 1 of the List: x.yaml:6 (document 2): Node a is also at x.yaml:1 (document 1)`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readManifests(writeFiles(t, map[string]string{"x.yaml": tt.text}))
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s…", err, tt.want)
			}
		})
	}
}

func TestEveryWrongDocumentIsNamedAtOnce(t *testing.T) {
	_, err := readManifests(writeFiles(t, map[string]string{"a.yaml": "[", "b.yaml": "kind: Pod\n---\n" + nodeA + "---\nkind: Job\n"}))
	if err == nil || len(strings.Split(err.Error(), "\n")) != 3 {
		t.Errorf("%v", err)
	}
	if _, err := readManifests(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("a directory that is not there is empty")
	}
}
