// SPDX-License-Identifier: Apache-2.0

package coexist_kubeproxy_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/fronts"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

const (
	// More than both directions can carry, held to perSecond, before the nodes were done with.
	transfer  = 16 << 20
	perSecond = 256 << 10
	every     = 5 * time.Millisecond
	many      = 50 // Services, added while flows run
)

var _ = Describe("flows of beep, while kube-proxy", Label("netns", "cluster"), func() {
	for _, mode := range kube.ProxyModes {
		for _, offload := range scene.Offloads {
			It(fmt.Sprintf("ends, is killed, starts again and syncs: nothing is lost (%s, %s)", mode, offload), func() {
				r := newRig(setting{mode: mode, offload: offload, policy: corev1.ServiceExternalTrafficPolicyCluster, ipMode: corev1.LoadBalancerIPModeVIP})
				r.startBeep()
				flows := r.begin()

				for _, node := range nodes {
					Expect(r.proxies[node].Terminate()).To(Succeed())
				}
				r.addServices()
				r.eachProxy((*kube.Proxy).Restart)
				for _, node := range nodes {
					Expect(r.proxies[node].Kill9()).To(Succeed())
				}
				r.eachProxy((*kube.Proxy).Restart)

				// An endpoint that leaves has kube-proxy clear the connection tracking of UDP to its Service.
				ctx := r.Context(limit)
				for _, pod := range pods {
					Expect(r.cluster.SetReady(ctx, kube.Namespace, pod, false)).To(Succeed())
					Expect(r.cluster.AwaitEndpoints(ctx, kube.Namespace, pod, 0)).To(Succeed())
				}
				r.eachProxy(func(p *kube.Proxy) error { return p.Synced(ctx) })
				for _, pod := range pods {
					Expect(r.cluster.SetReady(ctx, kube.Namespace, pod, true)).To(Succeed())
					Expect(r.cluster.AwaitEndpoints(ctx, kube.Namespace, pod, 2)).To(Succeed())
				}
				r.eachProxy(func(p *kube.Proxy) error { return p.Synced(ctx) })

				r.finish(flows)
				r.served()
				r.inside()
				r.clean()
			})
		}
	}
})

// flows are under way through every front.
type flows struct {
	transfers map[string]*scene.Transfer
	streams   map[string]*scene.Stream
}

func (r *rig) begin() flows {
	GinkgoHelper()
	under := flows{map[string]*scene.Transfer{}, map[string]*scene.Stream{}}
	ctx := r.Context(3 * time.Minute)
	everyWay(func(node string, family topo.Families, pod string) {
		w := r.front(node, family, pod)
		name := fmt.Sprintf("%s by %s", pod, w.addr)
		under.transfers[name] = r.Exchange(ctx, "client", w.at(fronts.Stream), transfer, transfer, perSecond)
		under.streams[name] = r.Stream(ctx, "client", w.at(fronts.Datagram), 1024, every)
	})
	return under
}

func (r *rig) finish(under flows) {
	GinkgoHelper()
	lost := 0
	for name, stream := range under.streams {
		tally, err := stream.Stop()
		Expect(err).NotTo(HaveOccurred(), name)
		Expect(tally.Duplicated+tally.Corrupted).To(BeZero(), "%s: %s", name, tally)
		if lost += tally.Lost; tally.Lost > 0 {
			GinkgoWriter.Printf("%s: %s\n", name, tally)
		}
		Expect(tally.Refused).To(BeEmpty(), name)
		Expect(tally.Sources).To(HaveLen(1), name)
	}
	Expect(lost).To(BeNumerically("<=", r.segmentDrops()), "datagrams lost, of which the segment itself dropped some")
	for name, exchange := range under.transfers {
		Expect(exchange.Ended()).To(BeFalse(), "%s: it had to be under way all the time", name)
	}
	for name, exchange := range under.transfers {
		_, err := exchange.Wait()
		Expect(err).NotTo(HaveOccurred(), name)
	}
}

// segmentDrops are the packets that came out of a host and did not get across the LAN, for want of a turn on a busy
// machine (net.core.netdev_max_backlog): no node has seen them.
func (r *rig) segmentDrops() int {
	GinkgoHelper()
	var dropped uint64
	for _, member := range r.Members() {
		if !member.LAN {
			continue
		}
		links, err := member.NS.Netlink().LinkList()
		Expect(err).NotTo(HaveOccurred())
		for _, link := range links {
			dropped += link.Attrs().Statistics.RxDropped
		}
	}
	return int(dropped)
}

// addServices gives kube-proxy something to write.
func (r *rig) addServices() {
	GinkgoHelper()
	for i := range many {
		r.create(&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("more-%d", i)},
			Spec:       corev1.ServiceSpec{Selector: map[string]string{"part": everyone}, Ports: r.ports(fronts.AnyPod)},
		})
	}
	Expect(r.cluster.AwaitEndpoints(r.Context(limit), kube.Namespace, fmt.Sprintf("more-%d", many-1), 2*len(pods))).To(Succeed())
}

func (r *rig) eachProxy(f func(*kube.Proxy) error) {
	GinkgoHelper()
	for _, node := range nodes {
		Expect(f(r.proxies[node])).To(Succeed())
	}
}
