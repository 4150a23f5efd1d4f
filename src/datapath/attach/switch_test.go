// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/migrate"
	"github.com/beep-lb/beep/src/netdev"
)

// rows stands for the loader's maps: a record of what was asked of them, and of what ran on the devices then.
type rows struct {
	node  *node
	moved bool
	watch []netdev.Link
	told  []string
	stop  migrate.Step
}

var errStopped = errors.New("stopped")

func (r *rows) FlowsMoved() bool { return r.moved }

func (r *rows) Bridge(netdev.Link) (*ebpf.Program, error) { return pass(r.node.t, "bridge"), nil }

func (r *rows) tell(words string) error {
	for _, uplink := range r.watch {
		words += fmt.Sprintf(" | %s > %s", r.node.programs(uplink, ebpf.AttachTCXIngress), r.node.programs(uplink, ebpf.AttachTCXEgress))
	}
	r.told = append(r.told, words)
	return nil
}

func (r *rows) PinAside() error        { return r.tell("pin aside") }
func (r *rows) CatchUp(maps.Tie) error { return r.tell("catch up") }
func (r *rows) Drain() error           { return r.tell("drain") }
func (r *rows) Publish() error         { return r.tell("publish") }

// Reach stops the test's goroutine in the middle of Attach, as a kill would.
func (r *rows) Reach(step migrate.Step) {
	if step == r.stop {
		panic(errStopped)
	}
}

// TestFlowsThatMove: at no moment does an ingress program run whose table no egress program reads.
func TestFlowsThatMove(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	n.other(a, "first", nil)
	must(t, n.attach(a, b))
	n.pinned(append(both(a), both(b)...)...)

	n.rows = rows{node: n, moved: true, watch: []netdev.Link{a, b}}
	must(t, n.attach(a, b))
	want := []string{
		"pin aside | first ours_in > ours_out | ours_in > ours_out",
		"catch up | first ours_in > ours_out | ours_in > ours_out",
		"catch up | first ours_in > bridge ours_out | ours_in > bridge ours_out",
		"drain | first ours_in > bridge ours_out | ours_in > bridge ours_out",
		"publish | first ours_in > bridge ours_out | ours_in > bridge ours_out",
	}
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(n.rows.told, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	n.on(a, "first ours_in", "ours_out")
	n.pinned(append(both(a), both(b)...)...)
	bridges, err := n.dir.Bridges()
	if err != nil || len(bridges) != 0 {
		t.Errorf("bridges %v, %v", bridges, err)
	}
}

// TestABridgeThatWasLeft is used by the next start if that moves flows, and goes in any case.
func TestABridgeThatWasLeft(t *testing.T) {
	for _, moved := range []bool{true, false} {
		n := newNode(t)
		a := n.device("up0")
		must(t, n.attach(a))
		n.rows = rows{node: n, moved: true, stop: migrate.IngressSwitched}
		func() {
			defer func() {
				if stopped := recover(); stopped != errStopped { //nolint:errorlint // it is the very value
					panic(stopped)
				}
			}()
			_ = n.attach(a) // it does not return
		}()
		n.on(a, "ours_in", "bridge ours_out")
		n.pinned(both(a)...)

		n.rows = rows{node: n, moved: moved}
		must(t, n.attach(a))
		n.on(a, "ours_in", "ours_out")
		n.pinned(both(a)...)
	}
}

// TestNoBridgeWithoutAnOldProgram: a new uplink has its egress program before its ingress program.
func TestNoBridgeWithoutAnOldProgram(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	must(t, n.attach(a))
	n.rows = rows{node: n, moved: true, watch: []netdev.Link{b}}
	must(t, n.attach(a, b))
	if got := n.rows.told[2]; got != "catch up | ours_in > ours_out" {
		t.Errorf("%s", got)
	}
	n.on(b, "ours_in", "ours_out")
}
