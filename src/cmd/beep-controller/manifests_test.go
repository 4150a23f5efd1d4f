// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	nodes = `
apiVersion: v1
kind: Node
metadata: {name: a}
spec: {podCIDRs: [10.42.1.0/24]}
status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}
---
apiVersion: v1
kind: Node
metadata: {name: b}
spec: {podCIDRs: [10.42.2.0/24]}
status: {addresses: [{type: InternalIP, address: 192.0.2.2}]}
`
	web = `
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 80}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [10.42.1.5], nodeName: a}
- {addresses: [10.42.2.5], nodeName: b}
`
	webFronts = "TCP/192.0.2.1:80 10.42.1.5:8080@local\nTCP/192.0.2.1:80 10.42.2.5:8080@192.0.2.2\n"
	oneFront  = "TCP/192.0.2.1:80 10.42.1.5:8080@local\n"
)

func TestManifestsBecomeFrontsAndStayWhenTheControllerEnds(t *testing.T) {
	m := newMachine(t)
	m.write("nodes.yaml", nodes)
	m.write("web.yaml", web)
	daemon := m.datapath()
	c := m.controller()
	m.wantFronts(c, webFronts)
	m.await("the ready file", c.Log, m.isReady)

	// An endpoint leaves; a port is taken by a younger Service and is not served.
	smaller := strings.Replace(web, "- {addresses: [10.42.2.5], nodeName: b}\n", "", 1)
	m.write("web.yaml", smaller+"---\n"+strings.NewReplacer("name: web}", "name: xeb}", "web-1", "xeb-1").Replace(web[:strings.Index(web, "---")]))
	m.wantFronts(c, oneFront)
	c.says("reason=PortConflict")
	statusFile := filepath.Join(m.manifests, "a.status.yaml")
	m.await("the status", c.Log, func() bool {
		text, err := os.ReadFile(statusFile)
		return err == nil && strings.Contains(string(text), "PortConflict: Service default/xeb") &&
			strings.Contains(string(text), "- ip: 192.0.2.1\n") && strings.Contains(string(text), "- ip: 192.0.2.2\n")
	})

	// A file that is wrong changes nothing, and is named.
	m.write("web.yaml", "kind: [")
	c.says("web.yaml:1 (document 1)")
	m.await("the fault in the status", c.Log, func() bool {
		text, _ := os.ReadFile(statusFile)
		return strings.Contains(string(text), "fault: 'web.yaml:1")
	})
	m.wantFronts(c, oneFront)

	code, body := m.get("/metrics")
	if code != 200 || !strings.Contains(body, "beep_controller_ready 1\n") || !strings.Contains(body, `beep_controller_objects{kind="Service"} 2`) {
		t.Errorf("/metrics: %d %s", code, body)
	}
	c.end()
	if m.isReady() {
		t.Error("the ready file outlives the controller")
	}
	m.wantFronts(c, oneFront)

	// A start with wrong manifests is refused, and touches nothing.
	c = m.controller()
	c.says("beep-controller: web.yaml:1 (document 1)")
	<-c.Done()
	m.write("web.yaml", "")
	c = m.controller()
	m.wantFronts(c, "")
	c.end()
	daemon.end()
}

func TestAControllerWaitsForTheMapsAndFollowsThem(t *testing.T) {
	m := newMachine(t)
	m.write("nodes.yaml", nodes)
	m.write("web.yaml", web)
	c := m.controller()
	c.says("waiting for the maps of beep run")
	if m.isReady() {
		t.Error("ready without maps")
	}
	daemon := m.datapath()
	m.wantFronts(c, webFronts)
	daemon.end()

	// Other sizes are other maps.
	daemon = m.datapath("--max-fronts=2000")
	m.wantFronts(c, webFronts)
	m.write("web.yaml", strings.Replace(web, "port: 80}", "port: 81}", 1))
	m.wantFronts(c, strings.ReplaceAll(webFronts, ":80 ", ":81 "))
	c.end()
	daemon.end()
}

func TestAnUnknownNodeIsNeverReadyAndWritesNothing(t *testing.T) {
	m := newMachine(t)
	m.write("nodes.yaml", nodes)
	m.write("web.yaml", web)
	daemon := m.datapath()
	c := m.controller()
	m.wantFronts(c, webFronts)
	c.end()
	m.write("nodes.yaml", "")
	c = m.controller()
	c.says("NodeUnknown: Node a: there is no Node of that name")
	time.Sleep(500 * time.Millisecond)
	if m.isReady() {
		t.Error("ready without its Node")
	}
	m.wantFronts(c, webFronts)
	c.end()
	daemon.end()
}

func TestAServiceThatDoesNotFitIsToldAndHoldsUpNobody(t *testing.T) {
	m := newMachine(t)
	m.write("nodes.yaml", nodes)
	m.write("web.yaml", web)
	m.write("shop.yaml", strings.NewReplacer("name: web}", "name: shop}", "web-1", "shop-1", "service-name: web", "service-name: shop", "port: 80}", "port: 90}").Replace(web))
	daemon := m.datapath("--max-fronts=1")
	c := m.controller()
	c.says("raise --max-fronts")
	m.await("the ready file", c.Log, m.isReady)
	text, err := os.ReadFile(filepath.Join(m.manifests, "a.status.yaml"))
	// Node b has room as far as anybody here knows.
	if err != nil || !strings.Contains(string(text), "name: default/shop") {
		t.Errorf("%v %s", err, text)
	}
	c.end()
	daemon.end()
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	m := newMachine(t)
	kubeconfig := func(user string) string {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		text := `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],
			clusters: [{name: k, cluster: {server: "https://192.0.2.9:6443"}}], users: [{name: u, user: ` + user + `}]}`
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--kubeconfig", "/nowhere"}, 1, `beep-controller: --kubeconfig (KUBECONFIG) "/nowhere": open /nowhere: no such file`},
		{[]string{"--kubeconfig", t.TempDir()}, 1, ": is a directory"},
		{[]string{"--kubeconfig", kubeconfig("{token: secret}")}, 1, "no X.509 client certificate in the current context: set client-certificate and client-key"},
		{[]string{"--kubeconfig", kubeconfig("{client-certificate: /gone, client-key: /gone}")}, 1, "/gone"},
		{[]string{"--kubeconfig="}, 1, "no --kubeconfig (KUBECONFIG) is given, and this is no pod with a service account"},
		{[]string{"--manifests", "/nowhere"}, 1, "beep-controller: read manifests: open /nowhere: no such file or directory\n"},
		{[]string{"--pod-cidr=10.42.1.0/24,10.42.2.0/24"}, 1, `beep-controller: --pod-cidr "10.42.2.0/24": is IPv4`},
		{[]string{"--nonsense"}, 2, "unknown flag: --nonsense"},
		{[]string{"--metrics-addr=192.0.2.77:9963"}, 1, "choose another --metrics-addr"},
		{[]string{"--version"}, 0, "v0-test\n"},
	} {
		p := m.start("beep-controller", append([]string{"--node-name=a", "--ready-file", m.readyFile}, tt.args...)...)
		<-p.Done()
		code := 0
		var exit *exec.ExitError
		if errors.As(p.Wait(), &exit) {
			code = exit.ExitCode()
		}
		if code != tt.code || !strings.Contains(p.Log(), tt.want) {
			t.Errorf("%v: exit %d\n%s", tt.args, code, p.Log())
		}
	}
}

// get asks the controller's metrics server.
func (m *machine) get(path string) (int, string) {
	m.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: m.ns.DialContext, DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1:9963"+path, nil)
	if err != nil {
		m.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}
