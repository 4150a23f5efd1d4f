// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/vm/node/podnet"
)

// plan is where a node stands.
type plan struct {
	name     string
	number   int            // from 1
	addrs    []netip.Prefix // on eth0, IPv4 first
	gateways []netip.Addr   // of the default routes
	podCIDRs []netip.Prefix
}

func (p plan) tap() string { return fmt.Sprintf("tap%d", p.number) }
func (p plan) mac() string { return fmt.Sprintf("02:00:5e:00:53:%02x", p.number) }

// bare are the addresses without their networks.
func (p plan) bare() []netip.Addr {
	var addrs []netip.Addr
	for _, prefix := range p.addrs {
		addrs = append(addrs, prefix.Addr())
	}
	return addrs
}

// file is one that a node has and its image lacks.
type file struct {
	text string
	mode fs.FileMode
}

// filesOf are what makes the image this node, by their path without the first slash; but for what flannel needs.
func filesOf(p plan, all []plan, o Options, credentials kube.Credentials) (map[string]file, error) {
	routed := all
	if o.CNI != Bridge {
		routed = nil
	}
	files := map[string]file{
		"etc/hostname": {text: p.name + "\n"},
		"etc/hosts": {
			text: "127.0.0.1 localhost\n::1 localhost\n" + p.addrs[0].Addr().String() + " " + p.name + "\n",
		},
		"etc/systemd/network/10-eth0.network":  {text: uplink(p, routed)},
		"etc/kubernetes/ca.crt":                {text: string(credentials.CA)},
		"etc/kubernetes/kubelet.kubeconfig":    {text: string(credentials.Kubelet), mode: 0o600},
		"etc/kubernetes/kube-proxy.kubeconfig": {text: string(credentials.Proxy), mode: 0o600},
		"etc/kubernetes/kubelet.crt":           {text: string(credentials.Cert)},
		"etc/kubernetes/kubelet.key":           {text: string(credentials.Key), mode: 0o600},
		"etc/kubernetes/node.env": {text: fmt.Sprintf("NODE_NAME=%s\nNODE_IPS=%s\nPOD_CIDRS=%s\nPROXY_MODE=%s\n",
			p.name, commas(p.bare()), commas(kube.PodCIDRs), o.Proxy)},
	}
	if o.CNI == Bridge {
		network, err := bridged(p).Conflist()
		if err != nil {
			return nil, err
		}
		files["etc/cni/net.d/10-rig.conflist"] = file{text: string(network)}
	}
	return files, nil
}

func commas[T fmt.Stringer](values []T) string {
	var texts []string
	for _, value := range values {
		texts = append(texts, value.String())
	}
	return strings.Join(texts, ",")
}

// uplink is systemd-networkd's file for the only card: its addresses, the default routes, and, as a routing CNI has them,
// routes to the pods of the other ones of these nodes.
func uplink(p plan, routed []plan) string {
	var text strings.Builder
	text.WriteString("[Match]\nName=eth0\n\n[Network]\nDHCP=no\nIPv6AcceptRA=no\n")
	for _, gateway := range p.gateways {
		fmt.Fprintf(&text, "Gateway=%s\n", gateway)
	}
	for _, addr := range p.addrs {
		fmt.Fprintf(&text, "\n[Address]\nAddress=%s\nDuplicateAddressDetection=none\n", addr)
	}
	for _, other := range routed {
		if other.number == p.number {
			continue
		}
		for i, cidr := range other.podCIDRs {
			fmt.Fprintf(&text, "\n[Route]\nDestination=%s\nGateway=%s\n", cidr, other.addrs[i].Addr())
		}
	}
	return text.String()
}

// bridged is the pods' network of a routing CNI: a bridge, and addresses of the node's pod CIDRs. Nothing is masqueraded.
func bridged(p plan) podnet.Network {
	return podnet.Network{Name: "rig", Subnets: p.podCIDRs, Routes: []netip.Prefix{
		netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0),
	}}
}

// diskLabel is what node-setup, in the image, looks for.
const diskLabel = "beep-node"

// writeDisk makes a small file system of files, below root/ there.
func writeDisk(ctx context.Context, path string, files map[string]file) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), "disk-")
	if err != nil {
		return fmt.Errorf("second disk: %w", err)
	}
	defer os.RemoveAll(dir)
	for name, f := range files {
		at := filepath.Join(dir, "root", name)
		// sshd wants nobody else to write to what is above its keys.
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return fmt.Errorf("second disk: %w", err)
		}
		mode := f.mode
		if mode == 0 {
			mode = 0o644
		}
		if err := os.WriteFile(at, []byte(f.text), mode); err != nil {
			return fmt.Errorf("second disk: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-L", diskLabel, "-d", dir, path, "16M")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("second disk: mke2fs: %w: %s", err, out)
	}
	return nil
}
