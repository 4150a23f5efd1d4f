// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/reconcile"
)

// Stand is one network with one variant on its nodes. All stands have the same addresses, and no way to each other.
type Stand struct {
	*topo.Topology
	Variant Variant

	daemons map[string]*beep.Daemon
	filled  map[string]*filled // what beep's maps hold, by node
	proxies []*kube.Proxy
}

// filled are the maps of one node, and who writes them.
type filled struct {
	kernel     *maps.Kernel
	reconciler *reconcile.Reconciler
}

// syncLimit is how long kube-proxy may take to write the rules of all Services.
const syncLimit = 3 * time.Minute

// Build builds a stand. Control may be nil where the variant needs no kube-proxy, and flags are further ones of `beep run`. After an
// error nothing is left behind.
func Build(ctx context.Context, variant Variant, control *kube.ControlPlane, flags ...string) (*Stand, error) {
	s := &Stand{Variant: variant, filled: map[string]*filled{}}
	if err := s.build(ctx, control, flags); err != nil {
		return nil, errors.Join(fmt.Errorf("stand %s: %w", variant, err), s.Close())
	}
	return s, nil
}

func (s *Stand) build(ctx context.Context, control *kube.ControlPlane, flags []string) (err error) {
	if s.Topology, err = topo.Build(Plan(string(s.Variant))); err != nil {
		return err
	}
	err = errors.Join(
		s.Offloads(true),
		// A port may be used again while its last connection is in TIME_WAIT, a second later at the earliest.
		s.NS(client).Sysctl("net.ipv4.tcp_tw_reuse", "1"),
	)
	if err != nil {
		return err
	}
	if mode, has := proxyOf[s.Variant]; has {
		if err := s.startProxies(ctx, control, mode); err != nil {
			return err
		}
	}
	if s.Variant.beep() {
		return s.startBeep(flags)
	}
	return nil
}

// proxyOf is kube-proxy's mode in the variants that have it.
var proxyOf = map[Variant]kube.ProxyMode{IPTables: kube.IPTables, NFTables: kube.NFTables, Beside: kube.NFTables}

// nodes are the names of the nodes.
func (s *Stand) nodes() []string { return []string{nodeA(string(s.Variant)), nodeB(string(s.Variant))} }

func (s *Stand) startProxies(ctx context.Context, control *kube.ControlPlane, mode kube.ProxyMode) error {
	if err := control.JoinAll(ctx, s.Topology); err != nil {
		return err
	}
	s.proxies = make([]*kube.Proxy, len(s.nodes()))
	var group errgroup.Group
	for i, node := range s.nodes() {
		group.Go(func() (err error) {
			s.proxies[i], err = control.StartProxy(s.Topology, node, kube.ProxyOptions{Mode: mode})
			return err
		})
	}
	return group.Wait()
}

func (s *Stand) startBeep(flags []string) (err error) {
	s.daemons = map[string]*beep.Daemon{}
	for _, node := range s.nodes() {
		s.daemons[node], err = beep.Launch(s.Topology, node, beep.Options{Controlled: true, Args: flags})
		if err != nil {
			return err
		}
		kernel, err := maps.Open(s.daemons[node].PinDir())
		if err != nil {
			return err
		}
		s.filled[node] = &filled{kernel: kernel, reconciler: reconcile.New(kernel, time.Now)}
	}
	return nil
}

// pause stops kube-proxy, or has it go on: it hears of all that came meanwhile at once, instead of writing its rules again every
// second.
func (s *Stand) pause(stop bool) error {
	signal := unix.SIGCONT
	if stop {
		signal = unix.SIGSTOP
	}
	var errs []error
	for _, proxy := range s.proxies {
		errs = append(errs, proxy.Signal(signal))
	}
	return errors.Join(errs...)
}

// Serve has both nodes serve what the Services ask for. beep's maps are written as its controller would write them; kube-proxy hears
// of Services by the API server, which must have them already and after them the marker of that number, which the call waits for.
func (s *Stand) Serve(ctx context.Context, services Services, number int) error {
	ctx, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	if len(s.proxies) > 0 && !s.Variant.beep() {
		if err := s.awaitMarker(ctx, marker(number)); err != nil {
			return fmt.Errorf("stand %s: kube-proxy does not serve %d Services: %w", s.Variant, services.Total, err)
		}
	}
	for _, proxy := range s.proxies {
		for err := proxy.Synced(ctx); err != nil; err = proxy.Synced(ctx) {
			if ctx.Err() != nil || !proxy.Running() {
				return fmt.Errorf("stand %s: %s has not synced %d Services: %w", s.Variant, proxy, services.Total, err)
			}
		}
	}
	for i, node := range s.nodes() {
		f := s.filled[node]
		if f == nil {
			continue
		}
		desired := services.desired(i == 0)
		if _, err := f.reconciler.Apply(desired); err != nil {
			return fmt.Errorf("stand %s: fill the maps of %s: %w", s.Variant, node, err)
		}
	}
	return nil
}

// awaitMarker dials a marker until it is served, in both families.
func (s *Stand) awaitMarker(ctx context.Context, marker service) error {
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		r := s.route(Way{Path: Local, Family: family})
		r.dialled = []netip.AddrPort{netip.AddrPortFrom(pick(addrsOf(frontA), family), marker.port)}
		conns, err := openConnections(r)
		if err != nil {
			return err
		}
		err = cluster.Await(ctx, func(context.Context) error { return conns.make(1) })
		if err = errors.Join(err, conns.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Tracked is how many connections the kernel tracks in a node's namespace: none if nothing there asked for connection tracking.
func (s *Stand) Tracked(node string) (string, error) {
	return s.NS(node).ReadSysctl("net.netfilter.nf_conntrack_count")
}

// Drops are the packets that beep has dropped on both nodes, by reason; none is an empty map.
func (s *Stand) Drops() (map[string]uint64, error) {
	all := map[string]uint64{}
	for node, daemon := range s.daemons {
		drops, err := daemon.Drops()
		if err != nil {
			return nil, err
		}
		for reason, count := range drops {
			all[node+" "+reason] = count
		}
	}
	return all, nil
}

// Close ends everything on the stand and removes it. It may be called twice.
func (s *Stand) Close() error {
	var errs []error
	for node, f := range s.filled {
		errs = append(errs, f.kernel.Close())
		delete(s.filled, node)
	}
	if s.Topology != nil {
		errs = append(errs, s.Topology.Close())
	}
	return errors.Join(errs...)
}
