// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/beep-lb/beep/deploy"
	"github.com/beep-lb/beep/src/watch"
)

const (
	// UserPrefix begins the user names of all controllers, as kube.Write has them; the node's name follows.
	UserPrefix = "beep-"
	// controllers is the group that has the rights.
	controllers = "beep:controllers"
)

// grantRights makes beep's namespace and gives the controllers the rights of an installation, so that one that asks for
// more is refused here as it would be there. They go to a group instead of a ServiceAccount: certificates have groups.
func (c *Cluster) grantRights(ctx context.Context) error {
	_, err := c.Control.Client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: watch.Namespace}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("rights of the controllers: %w", err)
	}
	file, err := deploy.Base.Open("base/rights.yaml")
	if err != nil {
		return fmt.Errorf("rights of the controllers: %w", err)
	}
	defer file.Close()
	documents := yaml.NewDocumentDecoder(file)
	defer documents.Close()
	for {
		text := make([]byte, 1<<16)
		n, err := documents.Read(text)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var object runtime.Object
		if err == nil {
			object, _, err = scheme.Codecs.UniversalDeserializer().Decode(text[:n], nil, nil)
		}
		if err == nil {
			err = c.grant(ctx, object)
		}
		if err != nil {
			return fmt.Errorf("rights of the controllers, deploy/base/rights.yaml: %w", err)
		}
	}
}

// grant creates a role, or a binding of it to the controllers; the ServiceAccount has no use here.
func (c *Cluster) grant(ctx context.Context, object runtime.Object) (err error) {
	rbac, create := c.Control.Client.RbacV1(), metav1.CreateOptions{}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: controllers}}
	switch object := object.(type) {
	case *rbacv1.ClusterRole:
		_, err = rbac.ClusterRoles().Create(ctx, object, create)
	case *rbacv1.Role:
		_, err = rbac.Roles(watch.Namespace).Create(ctx, object, create)
	case *rbacv1.ClusterRoleBinding:
		object.Subjects = subjects
		_, err = rbac.ClusterRoleBindings().Create(ctx, object, create)
	case *rbacv1.RoleBinding:
		object.Subjects = subjects
		_, err = rbac.RoleBindings(watch.Namespace).Create(ctx, object, create)
	}
	return err
}
