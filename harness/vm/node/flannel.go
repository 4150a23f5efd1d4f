// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/kube"
)

// flannelUser is whom the API server takes every flanneld for.
const flannelUser = "flannel"

// flannelNet is net-conf.json (flannel's Documentation/configuration.md).
type flannelNet struct {
	EnableIPv4, EnableIPv6 bool
	Network, IPv6Network   netip.Prefix
	Backend                flannelBackend
}

type flannelBackend struct{ Type string }

// flannelNetwork has both families in VXLAN, the backend of flannel's own manifest.
func flannelNetwork() ([]byte, error) {
	return json.MarshalIndent(flannelNet{
		EnableIPv4: true, EnableIPv6: true, Network: kube.PodCIDRs[0], IPv6Network: kube.PodCIDRs[1],
		Backend: flannelBackend{Type: "vxlan"},
	}, "", "  ")
}

// admitFlannel gives flanneld its rights, as flannel's manifest does (its pods it need not read: a unit tells it the node), and
// returns the files that make a node run it.
func (c *Cluster) admitFlannel(ctx context.Context) (map[string]file, error) {
	rights := c.Control.Client.RbacV1()
	name := metav1.ObjectMeta{Name: flannelUser}
	if _, err := rights.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
	}}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("rights of flanneld: %w", err)
	}
	if _, err := rights.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: flannelUser},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: flannelUser}},
	}, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("rights of flanneld: %w", err)
	}
	path, err := c.Control.Kubeconfig(flannelUser)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of flanneld: %w", err)
	}
	network, err := flannelNetwork()
	if err != nil {
		return nil, fmt.Errorf("flannel's network: %w", err)
	}
	return map[string]file{
		"etc/kube-flannel/net-conf.json":    {text: string(network)},
		"etc/kubernetes/flannel.kubeconfig": {text: string(kubeconfig), mode: 0o600},
	}, nil
}
