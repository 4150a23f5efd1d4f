// SPDX-License-Identifier: Apache-2.0

// Package node runs clusters whose nodes are virtual machines of a distribution: its kernel, systemd, containerd, kubelet,
// kube-proxy and CNI plugins, all of them upstream's, on a control plane of harness/kube. Invariant: nothing is pulled or
// resolved, nothing of beep is on a node until a spec puts it there, and all of it ends with Close.
//
//	c, err := node.Launch(ctx, node.Options{Proxy: kube.NFTables})
//	err = c.Import(ctx, "build/image/beep.tar")                  // into containerd, on every node
//	out, err := c.Kubectl(ctx, "apply", "-k", "deploy/base")
//	answer, err := traffic.Get(ctx, c.NS("client"), netip.AddrPortFrom(c.Node("node-a").Addr(topo.V4), 80))
//	out, err = c.Node("node-a").Run(ctx, "cat /proc/sys/kernel/random/boot_id")
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/vm"
)

// The size of a node.
const (
	memoryMiB = 1536
	cpus      = 2
)

// Node is a machine that is a node. Its methods may be called from any goroutine, but only one may reboot it.
type Node struct {
	Name  string
	Addrs []netip.Addr // the InternalIPs, IPv4 first

	machine *vm.Machine
	shell   *shell
}

// Addr is the node's address of that family.
func (n *Node) Addr(family topo.Families) netip.Addr {
	for _, addr := range n.Addrs {
		if family.Has(addr) {
			return addr
		}
	}
	return netip.Addr{}
}

// start boots a machine that has the files on its second disk, and does not wait for it. dir is for files that live as long
// as the machine.
func start(ctx context.Context, image Image, plan plan, files map[string]file, lan *netns.NS, dialer *netns.NS, dir string) (*Node, error) {
	keys, err := newKeys()
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", plan.name, err)
	}
	keys.addTo(files)
	disk := filepath.Join(dir, plan.name+".img")
	if err := writeDisk(ctx, disk, files); err != nil {
		return nil, fmt.Errorf("node %s: %w", plan.name, err)
	}
	machine, err := vm.Start(ctx, vm.Config{
		Name: plan.name, Kernel: image.file("vmlinuz"), Initrd: image.file("initrd.img"),
		// The classic names of devices, and no service of systemd's that waits for entropy or a network that is not there.
		Cmdline:   "root=/dev/vda rw net.ifnames=0 quiet systemd.show_status=0 systemd.firstboot=off",
		MemoryMiB: memoryMiB, CPUs: cpus, Reboots: true, NS: lan,
		Disks: []vm.Disk{
			{Path: image.file("root.img"), Format: "raw", Snapshot: true},
			{Path: disk, Format: "raw", ReadOnly: true},
		},
		NICs: []vm.NIC{{Tap: plan.tap(), MAC: plan.mac()}},
	})
	if err != nil {
		return nil, err
	}
	return &Node{Name: plan.name, Addrs: plan.bare(), machine: machine, shell: newShell(dialer, plan.bare()[0], keys)}, nil
}

// Run runs a command of the node's shell as root and returns what it printed, both streams of it. That it ended with
// another code than 0 is an error, with the text.
func (n *Node) Run(ctx context.Context, command string) (string, error) {
	return n.RunWith(ctx, command, nil)
}

// RunWith is Run with a standard input.
func (n *Node) RunWith(ctx context.Context, command string, stdin io.Reader) (string, error) {
	out, err := n.shell.run(ctx, command, stdin)
	if err != nil {
		return out, fmt.Errorf("node %s: %s: %w\n%s", n.Name, command, err, out)
	}
	return out, nil
}

// Copy writes a file of this machine's to the node, at the same place for everybody: /root/NAME, whose path it returns.
func (n *Node) Copy(ctx context.Context, path string) (string, error) {
	content, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("node %s: copy: %w", n.Name, err)
	}
	defer content.Close()
	to := "/root/" + filepath.Base(path)
	_, err = n.RunWith(ctx, "cat >"+to, content)
	return to, err
}

// Import imports an image's archive into the node's containerd, for Kubernetes.
func (n *Node) Import(ctx context.Context, path string) error {
	to, err := n.Copy(ctx, path)
	if err == nil {
		_, err = n.Run(ctx, "ctr -n k8s.io images import "+to)
	}
	return err
}

// SetProxyMode has kube-proxy write rules of another kind, until the next boot: what it wrote before is removed by itself.
func (n *Node) SetProxyMode(ctx context.Context, mode kube.ProxyMode) error {
	_, err := n.Run(ctx, "set -e; systemctl stop kube-proxy; kube-proxy --cleanup; "+
		"sed -i s/^PROXY_MODE=.*/PROXY_MODE="+string(mode)+"/ /etc/kubernetes/node.env; systemctl start kube-proxy")
	return err
}

// awaitShell waits until commands can be run on the node.
func (n *Node) awaitShell(ctx context.Context) error {
	_, err := n.bootID(ctx)
	return err
}

// bootID asks for the id of the running boot until there is an answer.
func (n *Node) bootID(ctx context.Context) (string, error) {
	return retry(ctx, func() (string, error) {
		once, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		select {
		case <-n.machine.Done():
			return "", backoff.Permanent(fmt.Errorf("node %s: the machine has ended; its console:\n%s", n.Name, n.machine.Serial()))
		default:
		}
		out, err := n.Run(once, "cat /proc/sys/kernel/random/boot_id")
		return strings.TrimSpace(out), err
	})
}

// Reboot reboots the node in order, as an administrator does, and returns when commands can be run on it again.
func (n *Node) Reboot(ctx context.Context) error {
	before, err := n.bootID(ctx)
	if err != nil {
		return err
	}
	if _, err := n.Run(ctx, "systemctl reboot"); err != nil {
		// The connection may end before the answer.
		if !errors.Is(err, errConnection) {
			return err
		}
	}
	return n.awaitBoot(ctx, before)
}

// awaitBoot waits until another boot than that one answers.
func (n *Node) awaitBoot(ctx context.Context, before string) error {
	_, err := retry(ctx, func() (struct{}, error) {
		now, err := n.bootID(ctx)
		if err == nil && now == before {
			err = fmt.Errorf("node %s: still in the boot %s", n.Name, before)
		}
		return struct{}{}, err
	})
	return err
}

// stop pulls the node's plug.
func (n *Node) stop() error {
	n.shell.close()
	return n.machine.Stop()
}

// show has a collector show the node as it is when the spec has failed.
func (n *Node) show(evidence *artifacts.Collector) {
	evidence.Register(n.Name+"-console", func(w io.Writer) { fmt.Fprint(w, n.machine.Serial()) })
	for name, command := range map[string]string{
		"journal": "journalctl --no-pager -b -n 2000",
		"network": "ip -d addr; ip route; ip -6 route; ip neigh; nft list ruleset | head -n 500; ss -tunap",
		"pods":    "ctr -n k8s.io containers list; ctr -n k8s.io images list -q; tail -n 200 /var/log/pods/*/*/*.log",
	} {
		evidence.Register(n.Name+"-"+name, func(w io.Writer) {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			out, err := n.Run(ctx, command)
			if err != nil {
				out = err.Error()
			}
			fmt.Fprint(w, out)
		})
	}
}

// retry asks until there is no error or ctx ends.
func retry[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	return backoff.Retry(ctx, ask, backoff.WithBackOff(backoff.NewConstantBackOff(250*time.Millisecond)), backoff.WithMaxElapsedTime(0))
}
