// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
)

func TestANodesFilesSayWhereItStands(t *testing.T) {
	whole := topo.BehindRouter(2, topo.Options{})
	plans := plansOf(&whole)
	files, err := filesOf(plans[0], plans, Options{Proxy: kube.IPTables, CNI: Bridge}, kube.Credentials{CA: []byte("authority")})
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string][]string{
		"etc/hostname": {"node-a\n"},
		"etc/systemd/network/10-eth0.network": {
			"Gateway=192.0.2.1\nGateway=2001:db8:b::1\n", "Address=192.0.2.11/24\n", "Address=2001:db8:b::11/64\n",
			"Destination=10.42.2.0/24\nGateway=192.0.2.12\n", "Destination=2001:db8:a::2:0/112\nGateway=2001:db8:b::12\n",
		},
		"etc/cni/net.d/10-rig.conflist": {`"subnet": "10.42.1.0/24"`, `"subnet": "2001:db8:a::1:0/112"`, `"type": "portmap"`},
		"etc/kubernetes/node.env":       {"NODE_NAME=node-a\n", "NODE_IPS=192.0.2.11,2001:db8:b::11\n", "PROXY_MODE=iptables\n"},
		"etc/kubernetes/ca.crt":         {"authority"},
	} {
		for _, text := range wanted {
			if !strings.Contains(files[name].text, text) {
				t.Errorf("%s lacks %q:\n%s", name, text, files[name].text)
			}
		}
	}
}

func TestWithFlannelANodeHasNoRoutesAndNoPodNetworkOfItsOwn(t *testing.T) {
	whole := topo.BehindRouter(2, topo.Options{})
	plans := plansOf(&whole)
	files, err := filesOf(plans[0], plans, Options{Proxy: kube.NFTables, CNI: Flannel}, kube.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	if network := files["etc/systemd/network/10-eth0.network"].text; strings.Contains(network, "[Route]") {
		t.Errorf("routes that are flannel's to make:\n%s", network)
	}
	if network, found := files["etc/cni/net.d/10-rig.conflist"]; found {
		t.Errorf("a pod network before flannel's:\n%s", network.text)
	}
	text, err := flannelNetwork()
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "EnableIPv4": true,
  "EnableIPv6": true,
  "Network": "10.42.0.0/16",
  "IPv6Network": "2001:db8:a::/64",
  "Backend": {
    "Type": "vxlan"
  }
}`
	if string(text) != want {
		t.Errorf("net-conf.json:\n%s\nwant:\n%s", text, want)
	}
}

func TestTheSecondDiskHoldsTheFilesAndHasItsLabel(t *testing.T) {
	require.Tool(t, "mke2fs")
	require.Tool(t, "debugfs")
	keys, err := newKeys()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]file{"etc/hostname": {text: "node-a\n"}}
	keys.addTo(files)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	disk := filepath.Join(t.TempDir(), "disk.img")
	if err := writeDisk(ctx, disk, files); err != nil {
		t.Fatal(err)
	}
	ask := func(request string) string {
		out, err := exec.CommandContext(ctx, "debugfs", "-R", request, disk).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v: %s", request, err, out)
		}
		return string(out)
	}
	if out := ask("cat root/etc/hostname"); !strings.Contains(out, "node-a\n") {
		t.Errorf("hostname: %q", out)
	}
	if out := ask("stats -h"); !strings.Contains(out, diskLabel) {
		t.Errorf("label: %s", out)
	}
	if out := ask("stat root/root/.ssh/authorized_keys"); !strings.Contains(out, "Mode:  0600") {
		t.Errorf("keys: %s", out)
	}
}
