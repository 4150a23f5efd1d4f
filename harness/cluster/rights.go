// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/src/publish"
	"github.com/beep-lb/beep/src/watch"
)

const (
	// UserPrefix begins the user names of all controllers, as kube.Write has them; the node's name follows.
	UserPrefix = "beep-"
	// controllers is the group that has the rights.
	controllers = "beep:controllers"
)

// clusterRules are beep's rights everywhere, and ownRules those in its own namespace: the whole of them, so that a
// controller that asks for more is refused here as it would be where an operator installed it.
var (
	clusterRules = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"services", "nodes"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"services/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	ownRules = []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"},
			Verbs: []string{"get", "list", "watch", "create", "update"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{publish.SeedSecret}, Verbs: []string{"get"}},
	}
)

// grantRights makes beep's namespace and gives the controllers their rights.
func (c *Cluster) grantRights(ctx context.Context) error {
	core, rbac, create := c.Control.Client.CoreV1(), c.Control.Client.RbacV1(), metav1.CreateOptions{}
	named := metav1.ObjectMeta{Name: "beep"}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: controllers}}
	steps := []func() error{
		func() error {
			_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: watch.Namespace}}, create)
			return err
		},
		func() error {
			_, err := rbac.ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: named, Rules: clusterRules}, create)
			return err
		},
		func() error {
			_, err := rbac.ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name}}, create)
			return err
		},
		func() error {
			_, err := rbac.Roles(watch.Namespace).Create(ctx, &rbacv1.Role{ObjectMeta: named, Rules: ownRules}, create)
			return err
		},
		func() error {
			_, err := rbac.RoleBindings(watch.Namespace).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: named, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name}}, create)
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("rights of the controllers: %w", err)
		}
	}
	return nil
}
