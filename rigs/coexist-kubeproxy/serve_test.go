// SPDX-License-Identifier: Apache-2.0

package coexist_kubeproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/watch"
)

var _ = Describe("beep beside kube-proxy", Label("netns", "cluster"), func() {
	for _, mode := range kube.ProxyModes {
		for _, offload := range scene.Offloads {
			Context(fmt.Sprintf("%s, %s", mode, offload), func() {
				It("takes over what kube-proxy served, and leaves it what is its own; externalTrafficPolicy Cluster", func() {
					r := newRig(setting{mode: mode, offload: offload, policy: corev1.ServiceExternalTrafficPolicyCluster, ipMode: corev1.LoadBalancerIPModeVIP})
					r.strict()
					everyWay(func(node string, family topo.Families, pod string) {
						r.reaches("client", r.front(node, family, pod), r.Addr(node, family))
					})
					r.startBeep()
					r.served()
					everyWay(func(node string, family topo.Families, pod string) {
						r.reaches("client", r.nodePort(node, family, pod), r.Addr(node, family))
					})
					r.inside()
					r.served()
					r.nothingInvalid()
					r.clean()
				})

				It("keeps the client's address by every node where kube-proxy refuses; externalTrafficPolicy Local", func() {
					r := newRig(setting{mode: mode, offload: offload, policy: corev1.ServiceExternalTrafficPolicyLocal, ipMode: corev1.LoadBalancerIPModeVIP})
					r.strict()
					everyWay(func(node string, family topo.Families, pod string) {
						if r.Pod(pod).Node == node {
							r.reaches("client", r.front(node, family, pod), r.Addr("client", family))
						} else {
							r.blocked("client", r.front(node, family, pod))
						}
					})
					r.startBeep()
					r.served()
					everyWay(func(node string, family topo.Families, pod string) {
						if r.Pod(pod).Node == node {
							r.reaches("client", r.nodePort(node, family, pod), r.Addr("client", family))
						} else {
							r.blocked("client", r.nodePort(node, family, pod))
						}
					})
					for _, pod := range pods {
						for _, node := range nodes {
							r.healthCheck(node, pod)
						}
					}
					r.inside()
					r.served()
					r.nothingInvalid()
					r.clean()
				})
			})
		}

		Context(string(mode), func() {
			It("has a policy by the client's address hold for clients of beep", func() {
				r := newRig(setting{mode: mode, offload: true, policy: corev1.ServiceExternalTrafficPolicyCluster, ipMode: corev1.LoadBalancerIPModeVIP})
				r.startBeep()
				r.served()
				for _, node := range nodes {
					r.nft(node, refusal)
				}
				everyWay(func(node string, family topo.Families, pod string) {
					r.blocked("client", r.front(node, family, pod))
					if r.Pod(pod).Node != node {
						// The contrast: kube-proxy hides the client from the policy.
						r.reaches("client", r.nodePort(node, family, pod), r.Addr(node, family))
					}
				})
				for _, node := range nodes {
					r.nft(node, "delete table inet networkpolicy")
				}
				r.served()
				r.clean()
			})

			It("tells apart a client's connections from one port, by beep and by kube-proxy, to one pod", func() {
				r := newRig(setting{mode: mode, offload: true, policy: corev1.ServiceExternalTrafficPolicyLocal, ipMode: corev1.LoadBalancerIPModeVIP})
				r.startBeep()
				for _, family := range scene.Families {
					from := netip.AddrPortFrom(r.Addr("client", family), 40000)
					for _, order := range [][]way{
						{r.front("node-a", family, "pod-a1"), r.nodePort("node-a", family, "pod-a1")},
						{r.nodePort("node-b", family, "pod-b1"), r.front("node-b", family, "pod-b1")},
					} {
						r.both(from, order)
						from = netip.AddrPortFrom(from.Addr(), from.Port()+1)
					}
				}
				r.clean()
			})

			It("has kube-proxy serve clients inside, who dial a published address of ipMode VIP, without a packet to the front", func() {
				r := newRig(setting{mode: mode, offload: true, policy: corev1.ServiceExternalTrafficPolicyLocal, ipMode: corev1.LoadBalancerIPModeVIP})
				r.startBeep()
				wires := r.wires()
				everyWay(func(node string, family topo.Families, pod string) {
					client := map[string]string{"pod-a1": "pod-b1", "pod-b1": "pod-a1"}[pod]
					r.reaches(client, r.front(node, family, pod), r.Addr(client, family))
					r.reaches("node-a", r.front(node, family, pod), r.Addrs("node-a")...)
				})
				Expect(r.dialled(wires)).To(BeZero())
				r.served()
				r.clean()
			})

			It("serves clients inside itself, who dial a published address of ipMode Proxy on another node", func() {
				r := newRig(setting{mode: mode, offload: true, policy: corev1.ServiceExternalTrafficPolicyLocal, ipMode: corev1.LoadBalancerIPModeProxy})
				r.startBeep()
				wires := r.wires()
				for _, family := range scene.Families {
					r.reaches("pod-b1", r.front("node-a", family, "pod-a1"), r.Addr("pod-b1", family))
					r.reaches("node-b", r.front("node-a", family, "pod-a1"), r.Addr("node-b", family))
				}
				Expect(r.dialled(wires)).To(BeNumerically(">", load.Datagrams))
				r.served()
				r.clean()
			})
		})
	}
})

// inside expects kube-proxy to serve clients inside by ClusterIPs.
func (r *rig) inside() {
	GinkgoHelper()
	for _, family := range scene.Families {
		for i, pod := range pods {
			other := pods[1-i]
			r.reaches(other, r.clusterIP(r.services[pod], family), r.Addr(other, family))
			// By chance the client itself answers, and then sees its node.
			r.reaches(other, r.clusterIP(r.everyone, family), append(r.Addrs(r.Pod(other).Node), r.Addr(other, family))...)
		}
	}
}

// healthCheck expects kube-proxy to tell by a Service's health port whether the node has its pod.
func (r *rig) healthCheck(node, pod string) {
	GinkgoHelper()
	want := http.StatusServiceUnavailable
	if r.Pod(pod).Node == node {
		want = http.StatusOK
	}
	for _, family := range scene.Families {
		at := netip.AddrPortFrom(r.Addr(node, family), uint16(r.services[pod].Spec.HealthCheckNodePort))
		response, err := traffic.HTTPClient(r.NS("client")).Get("http://" + at.String() + "/healthz")
		Expect(err).NotTo(HaveOccurred())
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(want), "%s on %s: %s", pod, node, body)
	}
}

// both holds connections from one address and port by both ways at once, in this order, and moves bytes over them.
func (r *rig) both(from netip.AddrPort, order []way) {
	GinkgoHelper()
	ctx := r.Context(limit)
	first := r.dialShared(ctx, from, order[0].at(fronts.Stream))
	second := r.dialShared(ctx, from, order[1].at(fronts.Stream))
	_, err := traffic.ExchangeOn(ctx, second, load.Bytes, load.Bytes)
	Expect(err).NotTo(HaveOccurred(), "the later connection, to %s", order[1].at(fronts.Stream))
	_, err = traffic.ExchangeOn(ctx, first, load.Bytes, load.Bytes)
	Expect(err).NotTo(HaveOccurred(), "the earlier connection, to %s", order[0].at(fronts.Stream))
}

// dialShared connects from an address and port of the client that another connection may have too.
func (r *rig) dialShared(ctx context.Context, from, to netip.AddrPort) net.Conn {
	GinkgoHelper()
	dialer := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(from), Control: func(_, _ string, raw syscall.RawConn) error {
		var option error
		err := raw.Control(func(fd uintptr) { option = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) })
		return errors.Join(err, option)
	}}
	var conn net.Conn
	Expect(r.NS("client").Do(func() (err error) {
		conn, err = dialer.DialContext(ctx, "tcp", to.String())
		return err
	})).To(Succeed(), "%s to %s", from, to)
	return conn
}

// wires are looks at the uplinks of both nodes.
func (r *rig) wires() []*watch.Watch {
	GinkgoHelper()
	var wires []*watch.Watch
	for _, node := range nodes {
		wire, err := watch.Start(r.Topology, node, "eth0")
		Expect(err).NotTo(HaveOccurred())
		wires = append(wires, wire)
	}
	return wires
}

// dialled ends the looks and counts the packets that were addressed to a front.
func (r *rig) dialled(wires []*watch.Watch) int {
	GinkgoHelper()
	count := 0
	for _, wire := range wires {
		packets, err := wire.Packets()
		Expect(err).NotTo(HaveOccurred())
		Expect(packets).NotTo(BeEmpty())
		for _, packet := range packets {
			if r.dialsFront(packet) {
				count++
			}
		}
	}
	return count
}

// dialsFront says whether a packet on an uplink is addressed to a front.
func (r *rig) dialsFront(packet gopacket.Packet) bool {
	_, dst, ok := watch.Ends(packet)
	if !ok {
		return false
	}
	var port uint16
	switch transport := packet.TransportLayer().(type) {
	case *layers.TCP:
		port = uint16(transport.DstPort)
	case *layers.UDP:
		port = uint16(transport.DstPort)
	}
	for kind := range kinds {
		for _, pod := range pods {
			for _, node := range nodes {
				for _, family := range scene.Families {
					if fronts.At(&r.Plan, r.Addr(node, family), kind, pod) == netip.AddrPortFrom(dst, port) {
						return true
					}
				}
			}
		}
	}
	return false
}

// refusal is a NetworkPolicy as a CNI enforces it: by the address that the pod's node sees.
var refusal = fmt.Sprintf(`
table inet networkpolicy {
	chain forward {
		type filter hook forward priority filter
		oifname "pod-*" ip saddr 198.51.100.0/24 tcp dport %[1]d drop
		oifname "pod-*" ip6 saddr 2001:db8:c::/64 tcp dport %[1]d drop
	}
}
`, fronts.HTTP)

// strict has the nodes track connections as strictly as they can and drop what is invalid, but for kube-proxy's own
// connection to the API server, which is older than the rules.
func (r *rig) strict() {
	GinkgoHelper()
	for _, node := range nodes {
		r.nft(node, `
table inet strict {
	counter invalid {}
	set invalid4 {
		typeof ip saddr . ip daddr . ip protocol . th sport . th dport
		flags dynamic
	}
	set invalid6 {
		typeof ip6 saddr . ip6 daddr . ip6 nexthdr . th sport . th dport
		flags dynamic
	}
	chain prerouting {
		type filter hook prerouting priority filter
		iifname != "mgmt" ct state invalid add @invalid4 { ip saddr . ip daddr . ip protocol . th sport . th dport }
		iifname != "mgmt" ct state invalid add @invalid6 { ip6 saddr . ip6 daddr . ip6 nexthdr . th sport . th dport }
		iifname != "mgmt" ct state invalid counter name invalid drop
	}
	chain forward {
		type filter hook forward priority filter
		iifname != "mgmt" ct state invalid counter name invalid drop
	}
}
`)
		for key, value := range map[string]string{"tcp_be_liberal": "0", "tcp_loose": "0", "checksum": "1"} {
			Expect(r.NS(node).Sysctl("net.netfilter.nf_conntrack_"+key, value)).To(Succeed())
		}
	}
}

// nothingInvalid expects strict's rules to have dropped nothing.
func (r *rig) nothingInvalid() {
	GinkgoHelper()
	for _, node := range nodes {
		var listed struct {
			Nftables []struct {
				Counter struct {
					Name    string
					Packets int
				}
			}
		}
		out := r.run(node, "", "nft", "-j", "list", "counters", "table", "inet", "strict")
		Expect(json.Unmarshal([]byte(out), &listed)).To(Succeed(), out)
		for _, object := range listed.Nftables {
			Expect(object.Counter.Packets).To(BeZero(), "invalid packets on %s: %s",
				node, r.run(node, "", "nft", "list", "table", "inet", "strict"))
		}
	}
}
