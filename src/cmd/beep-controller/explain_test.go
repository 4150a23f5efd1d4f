// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// explain runs `beep explain` as it is run beside the controller.
func (m *machine) explain(args ...string) result {
	m.t.Helper()
	return m.finish(exec.Command(filepath.Join(m.binaries, "beep"), append([]string{"explain", "--ready-file", m.readyFile}, args...)...))
}

// wantExplained waits until the answer has all of the texts.
func (m *machine) wantExplained(name string, texts ...string) {
	m.t.Helper()
	var got result
	m.await("beep explain "+name, func() string { return got.out + got.errout + "\nwant " + strings.Join(texts, "\nand  ") }, func() bool {
		got = m.explain(name)
		for _, text := range texts {
			if !strings.Contains(strings.Join(strings.Fields(got.out+got.errout), " "), text) {
				return false
			}
		}
		return true
	})
}

// The manifests of what is wrong in a Service and its endpoints: each disturbs nothing else.
const odd = `
apiVersion: v1
kind: Service
metadata: {name: twice}
spec:
  type: LoadBalancer
  ports: [{name: a, port: 90}, {name: b, port: 90}]
---
apiVersion: v1
kind: Service
metadata: {name: astray, namespace: shop}
spec:
  type: LoadBalancer
  ports: [{name: http, port: 91}, {name: node, port: 30080}, {name: tunnel, port: 6081, protocol: UDP}, {name: ssh, port: 22}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: astray-1, namespace: shop, labels: {kubernetes.io/service-name: astray}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints:
- {addresses: [203.0.113.5], nodeName: a}
- {addresses: [10.42.1.6], nodeName: a}
---
apiVersion: v1
kind: Service
metadata: {name: theirs}
spec:
  type: LoadBalancer
  loadBalancerClass: other.example/lb
  ports: [{port: 80}]
`

func TestExplain(t *testing.T) {
	m := newMachine(t)
	m.write("nodes.yaml", nodes)
	m.write("web.yaml", web)
	c := m.controller()
	m.wantExplained("web", "beep: node a: its controller does not know the Services, EndpointSlices and Nodes yet:", "waiting for the maps of beep run")
	daemon := m.datapath()
	m.wantExplained("web", "service default/web", "served yes", "80/TCP yes",
		"192.0.2.1 a published", "192.0.2.2 b published", "80/TCP 10.42.2.5:8080 b - web-1 yes")
	m.wantExplained("b", "node b", "listable yes", "internal 192.0.2.2; external none", "lease none", "default/web 192.0.2.2")
	m.write("odd.yaml", odd)
	m.wantExplained("twice", "90/TCP no PortDuplicate: the Service names the port twice; name every port and protocol once")
	m.wantExplained("shop/astray", "served yes",
		"91/TCP 203.0.113.5:8080 a - astray-1 no EndpointOutside: it is outside every pod CIDR", "91/TCP 10.42.1.6:8080 a - astray-1 yes",
		"30080/TCP no PortReserved: the port is reserved: 30000-32767/TCP (the nodePort range)",
		"22/TCP no PortReserved: the port is reserved: 22/TCP (--reserved-ports)", "6081/UDP no PortReserved")
	m.wantExplained("theirs", "served no", "ForeignClass: its loadBalancerClass is other.example/lb")
	m.wantExplained("nobody", `beep: not known: no Service of type LoadBalancer and no Node is called "nobody": name one`)
	if got := m.explain("nobody"); got.code != exitError || strings.Count(got.errout, "\n") != 1 {
		t.Errorf("an unknown name: %+v", got)
	}
	if got := m.explain("-o", "json", "default/web"); got.code != 0 || !strings.Contains(got.out, `"state": "published"`) {
		t.Errorf("for programs: %+v", got)
	}
	m.wantFronts(c, "TCP/192.0.2.1:80 10.42.1.5:8080@local\nTCP/192.0.2.1:80 10.42.2.5:8080@192.0.2.2\n"+
		"TCP/192.0.2.1:90 -@-\nTCP/192.0.2.1:91 10.42.1.6:8080@local\n")

	// What is wrong with the manifests and with the node is told, too.
	m.write("odd.yaml", "kind: [")
	m.wantExplained("shop/astray", "warning what is told here may be old: odd.yaml:1 (document 1)", "served yes")
	m.write("odd.yaml", "")
	m.write("nodes.yaml", "")
	m.wantExplained("a", "warning the maps are not as desired:", "node a", "listable no", "NodeUnknown: there is no Node of that name")

	second := m.controller("--metrics-addr=", "--explain-socket", filepath.Join(t.TempDir(), "other"), "--ready-file", filepath.Join(t.TempDir(), "other"))
	<-second.Done()
	if got := second.Log(); !strings.Contains(got, "beep-controller: another controller fills these maps: ") || !strings.Contains(got, "is locked by process") {
		t.Errorf("a second controller: %s", got)
	}
	third := m.controller("--metrics-addr=")
	<-third.Done()
	if got := third.Log(); !strings.Contains(got, "another process answers there") {
		t.Errorf("a second controller with the same ready file: %s", got)
	}
	m.write("nodes.yaml", nodes)
	m.await("the ready file", c.Log, m.isReady)
	c.end()
	m.wantExplained("web", "beep: no controller answers at "+m.readyFile+".sock: ")
	daemon.end()
}
