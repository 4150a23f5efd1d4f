// SPDX-License-Identifier: Apache-2.0

// Package fronts has every pod of a topology serve HTTP, TCP streams and UDP echoes, and names the fronts by which
// clients reach all pods or one of them. Invariant: a front has one meaning on every address of every node, so a
// spec chooses an address, a kind of traffic and a pod, and no port is written twice.
package fronts

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

// Kind is a kind of traffic, by the port (host order) that pods serve it on.
type Kind uint16

// The kinds of traffic: for traffic.Get, traffic.Exchange and traffic.SendUDP.
const (
	HTTP     Kind = 8080
	Stream   Kind = 8081
	Datagram Kind = 8082
)

// AnyPod stands for all pods: fronts with one endpoint a pod.
const AnyPod = ""

// Proto is the protocol that the kind travels by.
func (k Kind) Proto() model.Proto {
	if k == Datagram {
		return model.UDP
	}
	return model.TCP
}

// Serve has every pod serve every kind of traffic on all of its addresses, and returns the UDP servers by pod. They
// end with the topology.
func Serve(topology *topo.Topology) (map[string][]*traffic.Echo, error) {
	echoes := map[string][]*traffic.Echo{}
	for _, pod := range topology.Pods {
		ns := topology.NS(pod.Name)
		for _, addr := range pod.Addrs {
			if _, err := traffic.ServeHTTP(ns, pod.Name, netip.AddrPortFrom(addr, uint16(HTTP))); err != nil {
				return nil, err
			}
			if _, err := traffic.ServeTCP(ns, pod.Name, netip.AddrPortFrom(addr, uint16(Stream))); err != nil {
				return nil, err
			}
			echo, err := traffic.ServeUDP(ns, netip.AddrPortFrom(addr, uint16(Datagram)))
			if err != nil {
				return nil, err
			}
			echoes[pod.Name] = append(echoes[pod.Name], echo)
		}
	}
	return echoes, nil
}

// Services are those that At names, of every kind of traffic: by each of the pods alone, or by all of them where
// AnyPod is named. A pod must be in one service of a kind only, as beep's fixtures name each target once.
func Services(plan *topo.Plan, pods ...string) []beep.Service {
	var services []beep.Service
	for _, kind := range []Kind{HTTP, Stream, Datagram} {
		for _, pod := range pods {
			behind := []string{pod}
			if pod == AnyPod {
				behind = nil
				for _, each := range plan.Pods {
					behind = append(behind, each.Name)
				}
			}
			services = append(services, beep.Service{
				Proto: kind.Proto(), Port: port(plan, kind, pod), TargetPort: uint16(kind), Pods: behind,
			})
		}
	}
	return services
}

// port is 80, 81 or 82 for all pods, 1080… for the first pod alone, 2080… for the second.
func port(plan *topo.Plan, kind Kind, pod string) uint16 {
	port := uint16(kind) - 8000
	for i := range plan.Pods {
		if plan.Pods[i].Name == pod {
			port += uint16(1000 * (i + 1))
		}
	}
	return port
}

// At is the front on a node's address for a kind of traffic by a pod, or by AnyPod. A pod that the plan does not
// have is a mistake of the spec: it panics.
func At(plan *topo.Plan, addr netip.Addr, kind Kind, pod string) netip.AddrPort {
	if pod != AnyPod && plan.Pod(pod) == nil {
		panic(fmt.Sprintf("fronts: plan %q has no pod %q", plan.Title, pod))
	}
	return netip.AddrPortFrom(addr, port(plan, kind, pod))
}

// Load is how much Try sends after one HTTP request; the zero Load is that request alone.
type Load struct {
	Bytes     int64         // of a TCP stream, each way
	Datagrams int           // of UDP, 1 KiB each
	Patience  time.Duration // after which a datagram without an answer counts as lost; 0 is one second
}

// Try sends every kind of traffic from a client through the fronts of one address to one pod, and says the first
// thing that is not as it should be: another pod that answers, a source other than the client's address, a byte or
// a datagram lost.
func Try(ctx context.Context, topology *topo.Topology, client string, addr netip.Addr, pod string, load Load) error {
	family := topo.V6
	if addr.Is4() {
		family = topo.V4
	}
	ns, from := topology.NS(client), topology.Addr(client, family)
	front := At(&topology.Plan, addr, HTTP, pod)
	answer, err := traffic.Get(ctx, ns, front)
	if err == nil && (answer.Server != pod || answer.Client.Addr() != from) {
		err = fmt.Errorf("%s answered and saw %s, want %s that sees %s", answer.Server, answer.Client, pod, from)
	}
	if err == nil && load.Bytes > 0 {
		front = At(&topology.Plan, addr, Stream, pod)
		var transfer traffic.Transfer
		transfer, err = traffic.Exchange(ctx, ns, front, load.Bytes, load.Bytes)
		if err == nil && transfer.Client.Addr() != from {
			err = fmt.Errorf("the server saw %s, want %s", transfer.Client, from)
		}
	}
	if err == nil && load.Datagrams > 0 {
		front = At(&topology.Plan, addr, Datagram, pod)
		var tally traffic.Tally
		tally, err = traffic.SendUDP(ctx, ns, front, traffic.Datagrams{
			Count: load.Datagrams, Size: 1024, Patience: load.Patience,
		})
		if err == nil {
			err = unblemished(tally, load.Datagrams, from)
		}
	}
	if err != nil {
		return fmt.Errorf("%s through %s to %s: %w", client, front, pod, err)
	}
	return nil
}

// unblemished is nil if every datagram was answered once, and all of them came from one address.
func unblemished(tally traffic.Tally, sent int, from netip.Addr) error {
	good := tally.Sent == sent && tally.Received == sent && tally.Duplicated == 0 && tally.Corrupted == 0 && len(tally.Refused) == 0
	for source := range tally.Sources {
		good = good && source.Addr() == from
	}
	if !good {
		return fmt.Errorf("want %d answers that saw %s: %s", sent, from, tally)
	}
	return nil
}
