// SPDX-License-Identifier: Apache-2.0

// Package coexist_kubeproxy is the rig of a real kube-proxy beside beep, fed by a real API server. Invariant: each
// spec has namespaces, maps, daemons and a control plane of its own.
package coexist_kubeproxy_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

func TestCoexistKubeProxy(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig coexist-kubeproxy")
}

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

var _ = AfterSuite(func() { require.Report(os.Stdout) })

const (
	// limit ends whatever a spec waits for.
	limit = 60 * time.Second
	// silence is how long a connection must fail to come about to count as blocked: many round trips.
	silence = 300 * time.Millisecond
	// everyone is a Service of all pods that is not published.
	everyone = "everyone"
)

var (
	nodes = []string{"node-a", "node-b"}
	pods  = []string{"pod-a1", "pod-b1"}
	// kinds are named as the Services' ports.
	kinds = map[fronts.Kind]string{fronts.HTTP: "http", fronts.Stream: "stream", fronts.Datagram: "datagram"}
	// load is what a client sends by each way.
	load = fronts.Load{Bytes: 1 << 20, Datagrams: 100}
)

// plan is two nodes whose pods reach each other by a routing CNI's routes, without which kube-proxy cannot work.
func plan() topo.Plan {
	plan := topo.TwoNodes(topo.Options{})
	kube.RoutePods(&plan)
	return plan
}

// rig is a cluster of two nodes and a client outside.
type rig struct {
	*scene.Scene
	cluster *kube.ControlPlane
	proxies map[string]*kube.Proxy
	// services are those of type LoadBalancer, by the name of the one pod behind each.
	services map[string]*corev1.Service
	everyone *corev1.Service
}

// setting is what a spec varies.
type setting struct {
	mode    kube.ProxyMode
	offload scene.Offload
	policy  corev1.ServiceExternalTrafficPolicy
	ipMode  corev1.LoadBalancerIPMode
}

// newRig has everything but beep: pods that serve, published Services, and a kube-proxy on each node that knows them.
func newRig(s setting) *rig {
	GinkgoHelper()
	r := &rig{proxies: map[string]*kube.Proxy{}, services: map[string]*corev1.Service{}}
	r.Scene = scene.New(GinkgoT(), plan(), s.offload)
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	_, err := fronts.Serve(r.Topology)
	Expect(err).NotTo(HaveOccurred())
	r.cluster = kube.Start(GinkgoT(), kube.Options{Evidence: r.Evidence})
	ctx := r.Context(limit)
	Expect(r.cluster.JoinAll(ctx, r.Topology)).To(Succeed())
	Expect(r.cluster.RunPods(ctx, &r.Plan, map[string]string{"part": everyone})).To(Succeed())
	r.everyone = r.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: everyone},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"part": everyone}, Ports: r.ports(fronts.AnyPod)},
	})
	for _, pod := range pods {
		r.publish(pod, s)
	}
	for _, pod := range pods {
		Expect(r.cluster.AwaitEndpoints(ctx, kube.Namespace, pod, 2)).To(Succeed())
	}
	Expect(r.cluster.AwaitEndpoints(ctx, kube.Namespace, everyone, 2*len(pods))).To(Succeed())
	r.startProxies(s.mode)
	return r
}

func (r *rig) startProxies(mode kube.ProxyMode) {
	GinkgoHelper()
	var (
		starting sync.WaitGroup
		mu       sync.Mutex
	)
	for _, node := range nodes {
		starting.Go(func() {
			defer GinkgoRecover()
			proxy, err := r.cluster.StartProxy(r.Topology, node, kube.ProxyOptions{Mode: mode, Evidence: r.Evidence})
			Expect(err).NotTo(HaveOccurred())
			mu.Lock()
			defer mu.Unlock()
			r.proxies[node] = proxy
		})
	}
	starting.Wait()
	Expect(r.proxies).To(HaveLen(len(nodes)))
}

// create creates a dual-stack Service.
func (r *rig) create(service *corev1.Service) *corev1.Service {
	GinkgoHelper()
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	created, err := r.cluster.Client.CoreV1().Services(kube.Namespace).Create(r.Context(limit), service, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return created
}

// publish creates a Service of one pod, on the ports that beep's fronts have, and writes the nodes' addresses into its
// status, as beep's controller would.
func (r *rig) publish(pod string, s setting) {
	GinkgoHelper()
	service := r.create(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: pod},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: s.policy,
			Selector: map[string]string{"app": pod}, Ports: r.ports(pod),
		},
	})
	for _, node := range nodes {
		for _, addr := range r.Addrs(node) {
			service.Status.LoadBalancer.Ingress = append(service.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{
				IP: addr.String(), IPMode: new(s.ipMode),
			})
		}
	}
	updated, err := r.cluster.Client.CoreV1().Services(kube.Namespace).UpdateStatus(r.Context(limit), service, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	r.services[pod] = updated
}

// ports are those of a Service of one pod, or of all: of every kind of traffic, numbered as fronts numbers them.
func (r *rig) ports(pod string) []corev1.ServicePort {
	var ports []corev1.ServicePort
	for kind, name := range kinds {
		port := corev1.ServicePort{
			Name: name, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(int32(kind)),
			Port: int32(fronts.At(&r.Plan, netip.Addr{}, kind, pod).Port()),
		}
		if kind.Proto() == model.UDP {
			port.Protocol = corev1.ProtocolUDP
		}
		ports = append(ports, port)
	}
	return ports
}

// startBeep starts beep on both nodes, with a front for each port of the published Services.
func (r *rig) startBeep() {
	GinkgoHelper()
	r.Beep(beep.Options{Services: fronts.Services(&r.Plan, pods...)})
}

// way is how to reach a Service: an address and the port of each kind of traffic there.
type way struct {
	addr netip.Addr
	port map[fronts.Kind]uint16
}

func (w way) at(kind fronts.Kind) netip.AddrPort { return netip.AddrPortFrom(w.addr, w.port[kind]) }

// front is the published way to a pod, through a node.
func (r *rig) front(node string, family topo.Families, pod string) way {
	w := way{addr: r.Addr(node, family), port: map[fronts.Kind]uint16{}}
	for kind := range kinds {
		w.port[kind] = fronts.At(&r.Plan, w.addr, kind, pod).Port()
	}
	return w
}

// nodePort is kube-proxy's own way to a pod, through a node.
func (r *rig) nodePort(node string, family topo.Families, pod string) way {
	w := way{addr: r.Addr(node, family), port: map[fronts.Kind]uint16{}}
	for kind, name := range kinds {
		for _, port := range r.services[pod].Spec.Ports {
			if port.Name == name {
				w.port[kind] = uint16(port.NodePort)
			}
		}
	}
	return w
}

// clusterIP is the way to a Service from inside.
func (r *rig) clusterIP(service *corev1.Service, family topo.Families) way {
	w := way{port: map[fronts.Kind]uint16{}}
	for _, text := range service.Spec.ClusterIPs {
		if addr := netip.MustParseAddr(text); family.Has(addr) {
			w.addr = addr
		}
	}
	for kind, name := range kinds {
		for _, port := range service.Spec.Ports {
			if port.Name == name {
				w.port[kind] = uint16(port.Port)
			}
		}
	}
	return w
}

// reaches expects that every kind of traffic arrives whole, and that servers see one of these sources.
func (r *rig) reaches(from string, w way, sources ...netip.Addr) {
	GinkgoHelper()
	ctx, ns := r.Context(limit), r.NS(from)
	answer, err := traffic.Get(ctx, ns, w.at(fronts.HTTP))
	Expect(err).NotTo(HaveOccurred(), "%s to %s", from, w.at(fronts.HTTP))
	Expect(sources).To(ContainElement(answer.Client.Addr()), "source of %s to %s", from, w.at(fronts.HTTP))
	transfer, err := traffic.Exchange(ctx, ns, w.at(fronts.Stream), load.Bytes, load.Bytes)
	Expect(err).NotTo(HaveOccurred(), "%s to %s", from, w.at(fronts.Stream))
	Expect(sources).To(ContainElement(transfer.Client.Addr()), "source of %s to %s", from, w.at(fronts.Stream))
	tally, err := traffic.SendUDP(ctx, ns, w.at(fronts.Datagram), traffic.Datagrams{Count: load.Datagrams, Size: 1024})
	Expect(err).NotTo(HaveOccurred(), "%s to %s", from, w.at(fronts.Datagram))
	Expect(tally.Received).To(Equal(load.Datagrams), "%s to %s: %s", from, w.at(fronts.Datagram), tally)
	for source := range tally.Sources {
		Expect(sources).To(ContainElement(source.Addr()), "source of %s to %s", from, w.at(fronts.Datagram))
	}
}

// blocked expects that no connection comes about, and that nobody says so. It leaves no socket that would try again
// behind, as an HTTP client's would.
func (r *rig) blocked(from string, w way) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(r.Context(limit), silence)
	defer cancel()
	conn, err := r.NS(from).DialContext(ctx, "tcp", w.at(fronts.HTTP).String())
	if err == nil {
		Expect(conn.Close()).To(Succeed())
	}
	var timeout net.Error
	Expect(errors.As(err, &timeout) && timeout.Timeout()).To(BeTrue(), "%s to %s: %v", from, w.at(fronts.HTTP), err)
}

// everyWay calls f for each node, family and pod.
func everyWay(f func(node string, family topo.Families, pod string)) {
	for _, node := range nodes {
		for _, family := range scene.Families {
			for _, pod := range pods {
				f(node, family, pod)
			}
		}
	}
}

// served expects every front to serve the client outside, whose own address the pods see.
func (r *rig) served() {
	GinkgoHelper()
	everyWay(func(node string, family topo.Families, pod string) {
		r.reaches("client", r.front(node, family, pod), r.Addr("client", family))
	})
}

func (r *rig) clean() {
	GinkgoHelper()
	Expect(r.Drops()).To(BeEmpty())
	Expect(r.ChecksumErrors()).To(BeEmpty())
}

// nft loads rules on a node.
func (r *rig) nft(node, rules string) {
	GinkgoHelper()
	r.run(node, rules, "nft", "-f", "-")
}

// run runs a command in a host's namespace and returns what it printed.
func (r *rig) run(host, input, name string, args ...string) string {
	GinkgoHelper()
	require.Tool(GinkgoT(), name)
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &out
	process, err := r.NS(host).Start(cmd)
	Expect(err).NotTo(HaveOccurred())
	Expect(process.Wait()).To(Succeed(), "%s %s on %s: %s", name, strings.Join(args, " "), host, &out)
	return out.String()
}
