// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/beep-lb/beep/harness/topo"
)

// Credentials are what a machine needs to be a node: each a file's content.
type Credentials struct {
	CA      []byte // PEM, of all certificates of the cluster
	Kubelet []byte // kubeconfig of the node's own identity
	Proxy   []byte // kubeconfig of kube-proxy
	Cert    []byte // PEM, of the kubelet's own server, for the node's addresses
	Key     []byte // PEM, of Cert
}

// CredentialsOf makes the credentials of a node with these addresses. They live as long as the control plane.
func (c *ControlPlane) CredentialsOf(node string, addrs []netip.Addr) (Credentials, error) {
	made := Credentials{CA: c.ca.pem}
	serving, err := c.ca.server("system:node:"+node, addrs)
	if err != nil {
		return Credentials{}, err
	}
	made.Cert, made.Key = serving.cert, serving.key
	kubelet, err := c.NodeKubeconfig(node)
	if err != nil {
		return Credentials{}, err
	}
	proxy, err := c.Kubeconfig("system:kube-proxy")
	if err != nil {
		return Credentials{}, err
	}
	var errKubelet, errProxy error
	made.Kubelet, errKubelet = os.ReadFile(kubelet)
	made.Proxy, errProxy = os.ReadFile(proxy)
	if err := errors.Join(errKubelet, errProxy); err != nil {
		return Credentials{}, fmt.Errorf("credentials of node %s: %w", node, err)
	}
	return made, nil
}

// RouteBy has the control plane reach networks by a router of a topology, and be reached: the router gets a card on the management
// network. Nodes whose default route is that router need no other way to the API server.
func (c *ControlPlane) RouteBy(topology *topo.Topology, router string, networks ...netip.Prefix) error {
	if err := c.plug(topology, router); err != nil {
		return fmt.Errorf("route by %s: %w", router, err)
	}
	link, err := topology.NS(router).Netlink().LinkByName(nodeDevice)
	if err != nil {
		return fmt.Errorf("route by %s: %w", router, err)
	}
	addrs, err := topology.NS(router).Netlink().AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addrs) == 0 {
		return fmt.Errorf("route by %s: its address on the management network: %w", router, errors.Join(err, errors.New("none")))
	}
	for _, network := range networks {
		to := &net.IPNet{IP: network.Addr().AsSlice(), Mask: net.CIDRMask(network.Bits(), network.Addr().BitLen())}
		if err := c.ns.Netlink().RouteAdd(&netlink.Route{Dst: to, Gw: addrs[0].IP}); err != nil {
			return fmt.Errorf("route to %s by %s: %w", network, router, err)
		}
	}
	return nil
}

// GivePodCIDRs writes into a Node that its kubelet has registered which pods it may have, IPv4 first, as upstream's IPAM
// controller does: the nth node, counted from 1, has those of NodeOf. They cannot be changed later.
func (c *ControlPlane) GivePodCIDRs(ctx context.Context, node string, number int) error {
	var spec corev1.NodeSpec
	for _, cidr := range podCIDRs(number) {
		spec.PodCIDRs = append(spec.PodCIDRs, cidr.String())
	}
	spec.PodCIDR = spec.PodCIDRs[0]
	patch, err := json.Marshal(map[string]corev1.NodeSpec{"spec": spec})
	if err != nil {
		return fmt.Errorf("pod CIDRs of node %s: %w", node, err)
	}
	if _, err := c.Client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("pod CIDRs of node %s: %w", node, err)
	}
	return nil
}

// PodCIDRsOfNumber are the pod CIDRs that GivePodCIDRs gives, IPv4 first.
func PodCIDRsOfNumber(number int) []netip.Prefix { return podCIDRs(number) }

// kubeletFlags are those by which the API server reaches kubelets (kubectl logs, exec) and believes them.
func (c *ControlPlane) kubeletFlags() ([]string, error) {
	made, err := c.ca.client("kube-apiserver-kubelet-client", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	files := paths{cert: filepath.Join(c.dir, "kubelet-client.crt"), key: filepath.Join(c.dir, "kubelet-client.key")}
	return []string{
		"--kubelet-client-certificate=" + files.cert, "--kubelet-client-key=" + files.key, "--kubelet-certificate-authority=" + c.caFile(),
		"--kubelet-preferred-address-types=InternalIP", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
	}, errors.Join(os.WriteFile(files.cert, made.cert, 0o600), os.WriteFile(files.key, made.key, 0o600))
}

// signingFlags have the controller manager sign certificates that an administrator has approved.
func (a *authority) signingFlags(dir string) ([]string, error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	key := filepath.Join(dir, "ca.key")
	if err := os.WriteFile(key, encode("EC PRIVATE KEY", der), 0o600); err != nil {
		return nil, fmt.Errorf("key of the authority: %w", err)
	}
	return []string{"--cluster-signing-cert-file=" + filepath.Join(dir, authorityFile), "--cluster-signing-key-file=" + key}, nil
}

// startScheduler starts the scheduler and waits until it works.
func (c *ControlPlane) startScheduler(ctx context.Context) error {
	kubeconfig, err := c.Kubeconfig("system:kube-scheduler")
	if err != nil {
		return err
	}
	const port = 10259
	c.Scheduler, err = c.start("kube-scheduler", "--kubeconfig="+kubeconfig, "--leader-elect=false",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+c.dir, "--profiling=false")
	if err != nil {
		return err
	}
	return c.Scheduler.Await(ctx, func(ctx context.Context) error {
		return c.healthy(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
	})
}
