// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/harness/bpffs"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/transcript"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/bpfobj"
	"github.com/beep-lb/beep/src/datapath/load"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

// node is a namespace with a pin directory, and the uplinks under test.
type node struct {
	t    *testing.T
	ns   *netns.NS
	dir  *pinfs.Dir
	log  transcript.Transcript
	up   *Uplinks
	mu   sync.Mutex
	made []netdev.Link           // what instances were asked for
	fail func(netdev.Link) error // what they answer
	rows rows
}

// told is how often the log has said so.
func (n *node) told(words string) int { return strings.Count(n.log.String(), words) }

func newNode(t *testing.T) *node {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	require.Tool(t, "ip")
	n := &node{t: t, ns: netns.New(t, "attach")}
	n.rows.node = n
	dir, err := pinfs.Create(filepath.Join(bpffs.New(t), "beep"))
	must(t, err)
	n.dir = dir
	n.up = New(dir, n.instance, slog.New(slog.NewTextHandler(&n.log, nil)))
	return n
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// pass is a program that lets every packet by.
func pass(t *testing.T, name string) *ebpf.Program {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: name, Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	})
	must(t, err)
	return program
}

// instance stands for the loader: real programs that pass, and a record of the devices asked for.
func (n *node) instance(uplink netdev.Link) (*bpfobj.BeepPrograms, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = append(n.made, uplink)
	if n.fail != nil {
		if err := n.fail(uplink); err != nil {
			return nil, err
		}
	}
	return &bpfobj.BeepPrograms{BeepIngress: pass(n.t, "ours_in"), BeepEgress: pass(n.t, "ours_out")}, nil
}

func (n *node) asked() []netdev.Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.made)
}

func (n *node) failWith(fail func(netdev.Link) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = fail
}

// ip runs ip-link(8) and its like in the namespace: only harness and src/netdev speak netlink.
func (n *node) ip(args ...string) {
	n.t.Helper()
	out, err := exec.Command("ip", append([]string{"-n", n.ns.Name()}, args...)...).CombinedOutput()
	if err != nil {
		n.t.Fatalf("ip %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// device makes one end of a veth pair; more are words for ip-link(8) before its type.
func (n *node) device(name string, more ...string) netdev.Link {
	n.t.Helper()
	args := append([]string{"link", "add", name}, more...)
	n.ip(append(args, "type", "veth", "peer", "name", name+"-peer")...)
	return n.find(name)
}

func (n *node) remove(name string) {
	n.t.Helper()
	n.ip("link", "del", name)
}

func (n *node) find(name string) (found netdev.Link) {
	n.t.Helper()
	must(n.t, n.ns.Do(func() error {
		host, err := netdev.Open()
		if err != nil {
			return err
		}
		defer host.Close()
		found, err = host.ByName(name)
		return err
	}))
	return found
}

func (n *node) attach(uplinks ...netdev.Link) error {
	return n.ns.Do(func() error { return n.up.Attach(uplinks, &n.rows) })
}

// programs lists the names of what runs on a hook, in order.
func (n *node) programs(uplink netdev.Link, hook ebpf.AttachType) string {
	n.t.Helper()
	var names []string
	must(n.t, n.ns.Do(func() error {
		result, err := link.QueryPrograms(link.QueryOptions{Target: uplink.Index, Attach: hook})
		if err != nil {
			return err
		}
		for _, attached := range result.Programs {
			program, err := ebpf.NewProgramFromID(attached.ID)
			if err != nil {
				return err
			}
			info, err := program.Info()
			if err := errors.Join(err, program.Close()); err != nil {
				return err
			}
			names = append(names, info.Name)
		}
		return nil
	}))
	return strings.Join(names, " ")
}

// on checks what runs in both directions.
func (n *node) on(uplink netdev.Link, ingress, egress string) {
	n.t.Helper()
	if got := n.programs(uplink, ebpf.AttachTCXIngress); got != ingress {
		n.t.Errorf("ingress of %s runs %q, want %q", uplink, got, ingress)
	}
	if got := n.programs(uplink, ebpf.AttachTCXEgress); got != egress {
		n.t.Errorf("egress of %s runs %q, want %q", uplink, got, egress)
	}
}

// other attaches a program of somebody else's.
func (n *node) other(uplink netdev.Link, name string, anchor link.Anchor) link.Link {
	n.t.Helper()
	program := pass(n.t, name)
	var made link.Link
	must(n.t, n.ns.Do(func() (err error) {
		made, err = link.AttachTCX(link.TCXOptions{Interface: uplink.Index, Program: program, Attach: ebpf.AttachTCXIngress, Anchor: anchor})
		return err
	}), program.Close())
	n.t.Cleanup(func() { made.Close() })
	return made
}

// attached prints the pinned links, one a line.
func (n *node) attached() string {
	n.t.Helper()
	list, err := Attached(n.dir)
	must(n.t, err)
	var lines []string
	for _, a := range list {
		line := fmt.Sprintf("%d %s", a.Ifindex, a.Direction)
		if a.Severed {
			line += " severed"
		}
		if age := time.Since(a.Since); a.Program == 0 || age < -time.Second || age > time.Minute {
			n.t.Errorf("%s: program %d, loaded %s ago", line, a.Program, age)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func (n *node) pinned(want ...string) {
	n.t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), n.attached()); diff != "" {
		n.t.Errorf("pinned links (-want +got):\n%s", diff)
	}
}

func both(uplink netdev.Link) []string {
	return []string{fmt.Sprintf("%d egress", uplink.Index), fmt.Sprintf("%d ingress", uplink.Index)}
}

func TestAttachOutlivesTheProcess(t *testing.T) {
	n := newNode(t)
	n.pinned()
	a := n.device("up0")
	must(t, n.attach(a)) // holds no descriptor when it returns: only the pins keep the links
	n.on(a, "ours_in", "ours_out")
	n.pinned(both(a)...)
}

// TestOthersKeepTheirPlace: ours go behind what is there, and an update moves nothing.
func TestOthersKeepTheirPlace(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	n.other(a, "earlier", nil)
	must(t, n.attach(a))
	n.on(a, "earlier ours_in", "ours_out")
	n.other(a, "later", link.Tail())
	n.other(a, "first", link.Head())
	n.on(a, "first earlier ours_in later", "ours_out")

	before, err := Attached(n.dir)
	must(t, err, n.attach(a))
	n.on(a, "first earlier ours_in later", "ours_out")
	after, err := Attached(n.dir)
	must(t, err)
	for i := range after {
		if after[i].Program == before[i].Program {
			t.Errorf("%v still runs program %d", after[i].Link, after[i].Program)
		}
	}
	if n.told("msg=attached") != 2 {
		t.Error("an update was logged as an attachment")
	}
}

func TestUplinksNoLongerNamedAreDetached(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	n.other(a, "other", nil)
	must(t, n.attach(a, b))
	n.pinned(slices.Concat(both(a), both(b))...)

	// Somebody reads the link all the while.
	reader, err := link.LoadPinnedLink(n.dir.LinkPath(pinfs.Link{Ifindex: a.Index, Direction: pinfs.Ingress}), nil)
	must(t, err)
	defer reader.Close()
	must(t, n.attach(b))
	n.on(a, "other", "")
	n.on(b, "ours_in", "ours_out")
	n.pinned(both(b)...)
}

// TestSeveredLinks: the device was made again under the same ifindex while nobody ran.
func TestSeveredLinks(t *testing.T) {
	n := newNode(t)
	a := n.device("up0", "index", "77")
	must(t, n.attach(a))
	n.remove("up0")
	n.pinned("77 egress severed", "77 ingress severed")
	a = n.device("up0", "index", "77")
	n.on(a, "", "")
	must(t, n.attach(a))
	n.on(a, "ours_in", "ours_out")
	n.pinned("77 egress", "77 ingress")
}

// TestPinsThatLie: a pin whose link is elsewhere is dropped, not updated.
func TestPinsThatLie(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	elsewhere := n.other(b, "elsewhere", nil)
	must(t, elsewhere.Pin(n.dir.LinkPath(pinfs.Link{Ifindex: a.Index, Direction: pinfs.Ingress})))
	n.pinned(fmt.Sprintf("%d ingress severed", a.Index))
	must(t, n.attach(a))
	n.on(a, "ours_in", "ours_out")
	n.on(b, "elsewhere", "")

	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	must(t, err)
	defer m.Close()
	must(t, m.Pin(n.dir.LinkPath(pinfs.Link{Ifindex: b.Index, Direction: pinfs.Egress})))
	err = n.attach(a, b)
	if err == nil || !strings.Contains(err.Error(), "remove the pin if it is not beep's") {
		t.Errorf("a map pinned as a link: %v", err)
	}
}

func TestAllProgramsAreMadeBeforeOneIsAttached(t *testing.T) {
	n := newNode(t)
	a, b := n.device("up0"), n.device("up1")
	n.failWith(func(l netdev.Link) error {
		if l == b {
			return errors.New("no")
		}
		return nil
	})
	if err := n.attach(a, b); err == nil {
		t.Error("no error")
	}
	n.on(a, "", "")
	n.pinned()
	n.failWith(nil)
	err := n.attach(a, netdev.Link{Index: 4711, Name: "gone"})
	if err == nil || !strings.Contains(err.Error(), "attach to interface gone (ifindex 4711), egress") {
		t.Errorf("a device that is gone: %v", err)
	}
	n.on(a, "ours_in", "ours_out")
}

// TestTheShippedPrograms goes from flags to a device.
func TestTheShippedPrograms(t *testing.T) {
	n := newNode(t)
	a := n.device("up0")
	flags := &config.Datapath{MaxFronts: 4, EndpointsPerFront: 4, FlowTableMaxEntries: 1024, NodeAllowMaxEntries: 4, PodTargetsMax: 4,
		GenevePort: 6081, GeneveVNI: 48873}
	d, err := load.Load(n.dir, load.SettingsOf(flags), []netdev.Link{a}, slog.New(slog.DiscardHandler))
	must(t, err)
	n.up = New(n.dir, d.Instance, slog.New(slog.NewTextHandler(&n.log, nil)))
	must(t, n.ns.Do(func() error { return n.up.Attach([]netdev.Link{a}, d) }), d.Close())
	n.on(a, "beep_ingress", "beep_egress")
	n.pinned(both(a)...)
}
