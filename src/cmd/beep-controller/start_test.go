// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
)

// site is a cluster whose controllers are started one by one.
type site struct {
	*cluster.Cluster
	t   *testing.T
	dir string
	// tool is the binary of `beep`.
	tool string
}

// start starts a controller on a node, as the node of that name, by a kubeconfig.
func (s *site) start(on, name, kubeconfig string) *kube.Program {
	s.t.Helper()
	binary, err := beep.Binary("beep-controller")
	if err != nil {
		s.t.Fatal(err)
	}
	p := kube.NewProgram(s.NS(on), on, binary, "--pin-dir", s.Node(on).Datapath.PinDir(), "--node-name", name,
		"--kubeconfig", kubeconfig, "--ready-file", filepath.Join(s.dir, on), "--metrics-addr=")
	if err := p.Start(); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// kubeconfig is that of a controller, to an API server there.
func (s *site) kubeconfig(at netip.AddrPort, user string, groups ...string) string {
	s.t.Helper()
	path, err := s.Control.KubeconfigAt(at, user, groups...)
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

// explained waits until `beep explain` on a node says all of the texts.
func (s *site) explained(on, name string, texts ...string) {
	s.t.Helper()
	eventually(s.t, "beep explain "+name, func(context.Context) error {
		cmd := exec.Command(s.tool, "explain", name, "--ready-file", filepath.Join(s.dir, on))
		out, _ := cmd.CombinedOutput() // a refusal is an answer, too
		got := strings.Join(strings.Fields(string(out)), " ")
		for _, text := range texts {
			if !strings.Contains(got, text) {
				return fmt.Errorf("no %q in\n%s", text, out)
			}
		}
		return nil
	})
}

// fronts waits until a node's front of a port has these endpoints: ADDRESS:PORT each.
func (s *site) fronts(on, front string, want ...string) {
	s.t.Helper()
	eventually(s.t, "the front "+front, func(context.Context) error {
		out, err := s.Node(on).Datapath.Tool("fronts")
		var got []string
		for line := range strings.Lines(out) {
			if words := strings.Fields(line); words[0] == front {
				got = append(got, words[5])
			}
		}
		if err == nil && strings.Join(got, " ") != strings.Join(want, " ") {
			err = fmt.Errorf("it goes to %v, want %v", got, want)
		}
		return err
	})
}

// TestStartsAndAttachment is one cluster from controllers that cannot start to a node whose beep comes late.
func TestStartsAndAttachment(t *testing.T) {
	cluster.Require(t)
	binaries, err := build()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(beep.EnvBinary, filepath.Join(binaries, "beep"))
	s := &site{t: t, dir: t.TempDir(), tool: filepath.Join(binaries, "beep"),
		Cluster: cluster.Start(t, cluster.Options{Plan: cluster.Plan(2, topo.Options{Families: topo.V4}), Idle: true})}
	const controllers = "beep:controllers"
	pod := map[string]string{}
	for _, node := range []string{"node-a", "node-b"} {
		created, err := s.Control.Client.CoreV1().Pods(kube.Namespace).Create(t.Context(), cluster.Pod("on-"+node, "web", node), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the pod's address", func(ctx context.Context) error {
			now, err := s.Control.Client.CoreV1().Pods(kube.Namespace).Get(ctx, created.Name, metav1.GetOptions{})
			if err == nil && now.Status.PodIP == "" {
				err = fmt.Errorf("%s has none", created.Name)
			}
			if err == nil {
				pod[node] = now.Status.PodIP
			}
			return err
		})
	}

	t.Run("an API server that cannot be reached is waited for, and told of once a minute", func(t *testing.T) {
		p := s.start("node-a", "node-a", s.kubeconfig(netip.AddrPortFrom(kube.Server.Addr(), 1), "beep-node-a", controllers))
		s.explained("node-a", "web", "its controller does not know the Services, EndpointSlices and Nodes yet", "connection refused")
		time.Sleep(3 * time.Second) // several tries
		if got := strings.Count(p.Log(), "\n"); got != 2 || !strings.Contains(p.Log(), "waiting for the API server") {
			t.Errorf("%d lines, want that it runs and that it waits:\n%s", got, p.Log())
		}
		if err := p.Terminate(); err != nil {
			t.Error(err)
		}
	})

	t.Run("without the right to create the seed's Secret it ends, and names the right", func(t *testing.T) {
		p := s.start("node-a", "node-a", s.kubeconfig(kube.Server, "nobody"))
		<-p.Done()
		if err := p.Wait(); err == nil || !strings.Contains(p.Log(), `cannot get resource "secrets" in API group "" in the namespace "beep-system"`) {
			t.Errorf("%v\n%s", err, p.Log())
		}
	})

	t.Run("an unknown node name is never ready", func(t *testing.T) {
		p := s.start("node-a", "ghost", s.kubeconfig(kube.Server, "beep-ghost", controllers))
		s.explained("node-a", "ghost", "listable no", "NodeUnknown: there is no Node of that name; correct --node-name",
			"warning the maps are not as desired:")
		if err := p.Terminate(); err != nil {
			t.Error(err)
		}
	})

	services := s.Control.Client.CoreV1().Services(kube.Namespace)
	service := cluster.Service("web", frontPort)
	service.Spec.Ports = append(service.Spec.Ports, corev1.ServicePort{Name: "node", Port: 30500}, corev1.ServicePort{Name: "ssh", Port: 22})
	service.Spec.IPFamilyPolicy, service.Spec.IPFamilies = nil, nil
	if _, err := services.Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	late := s.Node("node-b").Datapath
	if err := late.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := late.Wipe(); err != nil {
		t.Fatal(err)
	}
	first := s.start("node-a", "node-a", s.kubeconfig(kube.Server, "beep-node-a", controllers))
	front := fmt.Sprintf("TCP/%s:%d", s.Addr("node-a", topo.V4), frontPort)
	at := func(node string) string { return fmt.Sprintf("%s:%d", pod[node], cluster.HTTPPort) }

	t.Run("a node whose beep is not attached gets no tunnels", func(t *testing.T) {
		s.fronts("node-a", front, at("node-a"))
		s.explained("node-a", "web", "publisher node-a", "on-node-b", "EndpointDetached: beep is not known to be attached on its node node-b",
			s.Addr("node-a", topo.V4).String()+" node-a published", "(IPv4) node-b not-published NodeLost")
		s.explained("node-a", "node-b", "listable no", "lease none", "tunnels only where no other endpoint can be used")
		for range 20 {
			answer, err := s.Ask(t.Context(), "client", netip.AddrPortFrom(s.Addr("node-a", topo.V4), frontPort))
			if err != nil || answer.Server != "on-node-a" {
				t.Fatalf("%s: %v", answer.Server, err)
			}
		}
	})

	t.Run("ports that are reserved are an Event, an error in the status, and no front", func(t *testing.T) {
		s.explained("node-a", "web", "30500/TCP no PortReserved: the port is reserved: 30000-32767/TCP (the nodePort range)",
			"22/TCP no PortReserved: the port is reserved: 22/TCP (--reserved-ports)")
		eventually(t, "two Events", func(ctx context.Context) error {
			list, err := s.Control.Client.CoreV1().Events(kube.Namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=PortReserved"})
			if err == nil && len(list.Items) != 2 {
				err = fmt.Errorf("there are %d", len(list.Items))
			}
			return err
		})
		eventually(t, "two errors", func(ctx context.Context) error {
			service, err := services.Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return err
			}
			var faults []string
			for _, entry := range service.Status.LoadBalancer.Ingress {
				for _, port := range entry.Ports {
					if port.Error != nil {
						faults = append(faults, fmt.Sprint(port.Port, *port.Error))
					}
				}
			}
			if got := strings.Join(faults, " "); got != "30500PortReserved 22PortReserved" {
				err = fmt.Errorf("status: %q", got)
			}
			return err
		})
		s.fronts("node-a", fmt.Sprintf("TCP/%s:22", s.Addr("node-a", topo.V4)))
	})

	t.Run("and tunnels once it is attached", func(t *testing.T) {
		if err := late.Restart(); err != nil {
			t.Fatal(err)
		}
		second := s.start("node-b", "node-b", s.kubeconfig(kube.Server, "beep-node-b", controllers))
		s.fronts("node-a", front, at("node-a"), at("node-b"))
		eventually(t, "answers of both pods through both nodes", everywhere(s.Cluster, "on-node-a", "on-node-b"))
		s.explained("node-b", "node-b", "listable yes", "publisher node-a", "tunnels as to any node", "attached yes; stopped no")
		if err := second.Terminate(); err != nil {
			t.Error(err)
		}
		// Its programs forward on, and so it keeps its tunnels; but it leaves the Services.
		s.explained("node-a", "node-b", "listable no", "NodeLeft: its controller was stopped; start it", "tunnels as to any node", "stopped yes")
		s.fronts("node-a", front, at("node-a"), at("node-b"))
	})

	t.Run("a node whose kube-proxy turns to IPVS leaves the Services, says why, and comes back", func(t *testing.T) {
		device := func(args ...string) {
			t.Helper()
			process, err := s.NS("node-a").Start(exec.Command("ip", append([]string{"link"}, args...)...))
			if err == nil {
				err = process.Wait()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		s.explained("node-a", "node-a", "listable yes")
		device("add", "kube-ipvs0", "type", "veth") // the kernel of the rigs has no dummy devices
		eventually(t, "the Event", func(ctx context.Context) error {
			list, err := s.Control.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + ipvsUnsupported})
			if err == nil && (len(list.Items) != 1 || list.Items[0].InvolvedObject.Name != "node-a") {
				err = fmt.Errorf("events: %v", list.Items)
			}
			return err
		})
		s.explained("node-a", "node-a", "listable no", "NodeNotAttached")
		device("delete", "kube-ipvs0")
		s.explained("node-a", "node-a", "listable yes")
	})

	t.Run("without an API server the answer says that it may be old", func(t *testing.T) {
		if err := s.Control.APIServer.Kill9(); err != nil {
			t.Fatal(err)
		}
		s.explained("node-a", "web", "warning what nodes say of themselves is not known, and all are taken to be well:",
			"warning what is told here may be old: Services: the API server cannot be asked:", "80/TCP yes")
		if err := s.Control.APIServer.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of the warnings", func(context.Context) error {
			out, err := exec.Command(s.tool, "explain", "web", "--ready-file", filepath.Join(s.dir, "node-a")).CombinedOutput()
			if err == nil && strings.Contains(string(out), "warning") {
				err = fmt.Errorf("%s", out)
			}
			return err
		})
	})

	t.Run("maps that are gone are an Event of the Node, and its addresses leave", func(t *testing.T) {
		if err := s.Node("node-a").Datapath.Terminate(); err != nil {
			t.Fatal(err)
		}
		if err := s.Node("node-a").Datapath.Wipe(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the Event", func(ctx context.Context) error {
			list, err := s.Control.Client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=" + mapRestoreFailed})
			if err == nil && (len(list.Items) != 1 || list.Items[0].InvolvedObject.Name != "node-a") {
				err = fmt.Errorf("events: %v", list.Items)
			}
			return err
		})
		s.explained("node-a", "node-a", "listable no", "NodeNotAttached", "warning the maps are not as desired:")
	})
	if err := first.Terminate(); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"are used last\" nodes=node-b\n", "beep is attached on every node"} {
		if got := strings.Count(first.Log(), line); got != 1 {
			t.Errorf("%d lines say %s:\n%s", got, line, first.Log())
		}
	}
}
