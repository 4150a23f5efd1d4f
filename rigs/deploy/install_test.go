// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
)

// user is who deploy/base makes beep, and certificateUser who overlays/client-cert does.
const (
	user            = "system:serviceaccount:" + namespace + ":beep"
	certificateUser = "beep-controller"
)

// withoutWatchList has client-go list by lists, as it does where an API server cannot list by a watch (KEP-3157).
const withoutWatchList = "KUBE_FEATURE_WatchListClient=false"

var _ = Describe("deploy/base", Label("cluster"), func() {
	It("is applied, gives exactly the rights that beep needs, holds it to its own, and is deleted without a trace", func() {
		r := newRig()
		By("the API server takes every object as it is")
		Expect(r.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "deploy/base/namespace.yaml")).To(ContainSubstring("beep-system"))
		Expect(r.kubectl("apply", "--validate=strict", "-k", "deploy/base")).To(ContainSubstring("daemonset.apps/beep created"))
		Expect(r.kubectl("diff", "-k", "deploy/base")).To(BeEmpty())

		for _, overlay := range overlays() {
			Expect(r.kubectl("apply", "--dry-run=server", "--validate=strict", "-k", overlay)).To(ContainSubstring("daemonset.apps/beep "), overlay)
		}

		By("controllers with their pods' tokens serve a Service")
		tokens := map[string]string{}
		var controllers []*kube.Program
		for _, node := range r.Nodes() {
			tokens[node.Name] = r.token(r.podOf(node.Name))
			controllers = append(controllers, r.controller(node.Name, tokens[node.Name], withoutWatchList))
		}
		_, err := r.Control.Client.AppsV1().Deployments(metav1.NamespaceDefault).Create(r.ctx, cluster.Deployment("web", 2), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		service := cluster.Service("web", 8000)
		_, err = r.Control.Client.CoreV1().Services(metav1.NamespaceDefault).Create(r.ctx, service, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		r.served(8000)

		By("the API server holds beep to its own")
		r.refuses(tokens["node-a"])

		By("a Service that cannot be served draws an Event, the last right that was not used yet")
		reserved := cluster.Service("web", 22)
		reserved.Name = "ssh"
		_, err = r.Control.Client.CoreV1().Services(metav1.NamespaceDefault).Create(r.ctx, reserved, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		r.await(func(ctx context.Context) error {
			events, err := r.Control.Client.CoreV1().Events(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=ssh"})
			if err == nil && len(events.Items) == 0 {
				err = fmt.Errorf("no Event of the Service ssh")
			}
			return err
		})

		By("every right was used, and no other was asked for")
		for _, controller := range controllers {
			Expect(controller.Terminate()).To(Succeed())
		}
		asked := r.asked(user)
		for _, right := range r.rights() {
			Expect(asked).To(HaveKey(right), "deploy/base/rights.yaml grants what nobody used")
		}

		By("a certificate instead of tokens has the rights that they had, and they have none")
		r.kubectl("apply", "--validate=strict", "-k", "deploy/overlays/client-cert")
		controllers = nil
		for _, node := range r.Nodes() {
			controllers = append(controllers, r.certified(node.Name, certificateUser))
		}
		r.served(8000)
		Expect(r.Control.Client.CoreV1().Services(metav1.NamespaceDefault).Delete(r.ctx, "ssh", metav1.DeleteOptions{})).To(Succeed())
		r.await(func(context.Context) error {
			if !r.asked(certificateUser)["update leases"] {
				return fmt.Errorf("no Lease was written by the certificate's user")
			}
			return nil
		})
		_, err = r.client(tokens["node-a"]).CoordinationV1().Leases(namespace).List(r.ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the ServiceAccount still lists Leases: %v", err)
		_, err = r.client(tokens["node-a"]).CoreV1().Services("").List(r.ctx, metav1.ListOptions{})
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the ServiceAccount still lists Services: %v", err)
		r.publishesOnlyAddresses(r.certificate(certificateUser))
		for _, controller := range controllers {
			Expect(controller.Terminate()).To(Succeed())
		}

		By("it is deleted")
		r.kubectl("delete", "--wait=true", "--timeout=60s", "-k", "deploy/overlays/client-cert")
		_, err = r.Control.Client.CoreV1().Namespaces().Get(r.ctx, namespace, metav1.GetOptions{})
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "the namespace: %v", err)
		left := r.kubectl("get", "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,flowschemas",
			"-l", "app.kubernetes.io/name=beep", "-o", "name")
		Expect(left).To(Or(BeEmpty(), ContainSubstring("No resources found")))

		By("what cleans the nodes is applied and deleted, too")
		Expect(r.kubectl("apply", "--validate=strict", "-k", "deploy/uninstall")).To(ContainSubstring("daemonset.apps/beep-uninstall created"))
		r.await(func(ctx context.Context) error {
			set, err := r.Control.Client.AppsV1().DaemonSets("beep-uninstall").Get(ctx, "beep-uninstall", metav1.GetOptions{})
			if err == nil && int(set.Status.DesiredNumberScheduled) != len(r.Nodes()) {
				err = fmt.Errorf("it is wanted on %d nodes", set.Status.DesiredNumberScheduled)
			}
			return err
		})
		r.kubectl("delete", "--wait=true", "--timeout=60s", "-k", "deploy/uninstall")
	})
})

// overlays are the folders that stand beside deploy/base for an operator to apply instead.
func overlays() []string {
	GinkgoHelper()
	files, err := filepath.Glob("../../deploy/overlays/*/kustomization.yaml")
	Expect(err).NotTo(HaveOccurred())
	Expect(files).NotTo(BeEmpty())
	var dirs []string
	for _, file := range files {
		dir, err := filepath.Rel("../..", filepath.Dir(file))
		Expect(err).NotTo(HaveOccurred())
		dirs = append(dirs, dir)
	}
	return dirs
}

// asked is what controllers asked of the API server as a user: a verb and a resource each. None may have been refused,
// so a role that lacks what they need fails here.
func (r *rig) asked(user string) map[string]bool {
	GinkgoHelper()
	requests, err := r.Control.Requests(user)
	Expect(err).NotTo(HaveOccurred())
	asked := map[string]bool{}
	for _, request := range requests {
		if !strings.HasPrefix(request.Agent, "beep-controller/") {
			continue // of refuses
		}
		Expect(request.Code).NotTo(Equal(403), "refused: %s", request)
		asked[request.Verb+" "+request.Resource] = true
	}
	return asked
}

// rights are those of the roles, as a verb and a resource each.
func (r *rig) rights() []string {
	GinkgoHelper()
	clusterRole, err := r.Control.Client.RbacV1().ClusterRoles().Get(r.ctx, "beep", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	role, err := r.Control.Client.RbacV1().Roles(namespace).Get(r.ctx, "beep", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	var rights []string
	for _, rule := range slices.Concat(clusterRole.Rules, role.Rules) {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				rights = append(rights, verb+" "+resource)
			}
		}
	}
	slices.Sort(rights)
	return rights
}

// refuses shows what the token of a node's pod does not allow, though RBAC alone would.
func (r *rig) refuses(token string) {
	GinkgoHelper()
	as := r.client(token)
	r.publishesOnlyAddresses(as)

	leases := as.CoordinationV1().Leases(namespace)
	lease, err := leases.Get(r.ctx, "node-b", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = leases.Update(r.ctx, lease, metav1.UpdateOptions{})
	Expect(err).To(MatchError(ContainSubstring("a node may write no other node's Lease")))
	secrets := as.CoreV1().Secrets("kube-system")
	_, err = secrets.List(r.ctx, metav1.ListOptions{})
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "secrets of others: %v", err)
	_, err = as.CoreV1().Secrets(namespace).List(r.ctx, metav1.ListOptions{})
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "other secrets of its own namespace: %v", err)
}

// publishesOnlyAddresses shows that a client can change nothing else of a Service.
func (r *rig) publishesOnlyAddresses(as kubernetes.Interface) {
	GinkgoHelper()
	services := as.CoreV1().Services(metav1.NamespaceDefault)
	for _, patch := range []string{
		`{"metadata":{"labels":{"stolen":"yes"}}}`,
		`{"metadata":{"annotations":{"stolen":"yes"}}}`,
		`{"metadata":{"finalizers":["example.org/for-ever"]}}`,
		`{"status":{"conditions":[{"type":"Odd","status":"True","reason":"None","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`,
	} {
		_, err := services.Patch(r.ctx, "web", types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
		Expect(err).To(MatchError(ContainSubstring("beep may change nothing but status.loadBalancer")), patch)
	}
	_, err := services.Patch(r.ctx, "web", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`), metav1.PatchOptions{})
	Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the Service itself: %v", err)
}
