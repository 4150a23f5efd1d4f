// SPDX-License-Identifier: Apache-2.0

package vmcluster_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/vm/node"
)

// What enforces NetworkPolicies while a spec wants it, and the table of nftables that it writes on every node.
const (
	enforcer      = "kube-network-policies"
	enforcerFile  = "rigs/vm-cluster/testdata/kube-network-policies.yaml"
	enforcerSpace = metav1.NamespaceSystem
)

// policy has NetworkPolicies enforced that admit an address to the pods of both nodes: the packets that beep brings, from here and
// through the tunnel, carry the client's.
func (r *rig) policy(ctx context.Context) {
	GinkgoHelper()
	r.enforce(ctx)
	before := r.drops(ctx)

	By("the client is admitted")
	r.admit(ctx, r.Addrs(node.Client)...)
	r.judged(ctx, "accept")
	r.served(ctx)

	By("others are, and the client is not")
	r.admit(ctx, netip.MustParseAddr("198.51.100.99"), netip.MustParseAddr("2001:db8:c::99"))
	await(ctx, "no front answers", r.refused)
	Expect(r.refused(ctx)).To(Succeed(), "once that all refuse, all go on to")
	r.judged(ctx, "drop")
	Expect(r.drops(ctx)).To(Equal(before), "what the pod's network refuses is no drop of beep's")

	By("there is no policy")
	Expect(r.Control.Client.NetworkingV1().NetworkPolicies(metav1.NamespaceDefault).Delete(ctx, policyName, metav1.DeleteOptions{})).To(Succeed())
	r.served(ctx)
}

// enforce has an enforcer on every node until the end of the spec.
func (r *rig) enforce(ctx context.Context) {
	GinkgoHelper()
	var imports errgroup.Group
	for _, node := range r.Nodes() {
		imports.Go(func() error {
			_, err := node.Run(ctx, "ctr -n k8s.io images import /usr/share/spare-images/"+enforcer+".tar")
			return err
		})
	}
	Expect(imports.Wait()).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		r.kubectl(ctx, "delete", "--ignore-not-found", "--wait", "-f", enforcerFile)
		for _, node := range r.Nodes() {
			// It ends without tidying up: its rules go on to ask somebody who is not there.
			r.on(ctx, node.Name, "nft delete table inet "+enforcer+" || ! nft list table inet "+enforcer)
		}
	})
	r.kubectl(ctx, "apply", "-f", enforcerFile)
	r.kubectl(ctx, "-n", enforcerSpace, "rollout", "status", "daemonset", enforcer, "--timeout="+limit.String())
	for _, node := range r.Nodes() {
		await(ctx, "rules on "+node.Name, func(ctx context.Context) error {
			_, err := node.Run(ctx, "nft list table inet "+enforcer)
			return err
		})
	}
}

const policyName = "web"

// admit has the only policy of the Service's pods admit these addresses to their port.
func (r *rig) admit(ctx context.Context, addrs ...netip.Addr) {
	GinkgoHelper()
	port := intstr.FromInt32(8080)
	rule := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}}}
	for _, addr := range addrs {
		rule.From = append(rule.From, networkingv1.NetworkPolicyPeer{
			IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(addr, addr.BitLen()).String()},
		})
	}
	policies := r.Control.Client.NetworkingV1().NetworkPolicies(metav1.NamespaceDefault)
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: policyName},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     []networkingv1.NetworkPolicyIngressRule{rule},
		},
	}
	_, err := policies.Create(ctx, policy, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = policies.Update(ctx, policy, metav1.UpdateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
}

// judged waits until the enforcer of every node has said so of a packet of the client, whom it knows by its own address; meanwhile
// the client asks.
func (r *rig) judged(ctx context.Context, verdict string) {
	GinkgoHelper()
	pods, err := r.Control.Client.CoreV1().Pods(enforcerSpace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + enforcer})
	Expect(err).NotTo(HaveOccurred())
	Expect(pods.Items).To(HaveLen(len(r.Nodes())))
	for _, pod := range pods.Items {
		await(ctx, verdict+" by "+pod.Spec.NodeName, func(ctx context.Context) error {
			_ = r.refused(ctx) // whether it is so is not the question
			said, err := r.Kubectl(ctx, "-n", enforcerSpace, "logs", pod.Name)
			if err != nil {
				return err
			}
			for _, wanted := range append([]string{fmt.Sprintf("verdict=%q", verdict)}, texts(r.Addrs(node.Client))...) {
				if !strings.Contains(said, wanted) {
					return fmt.Errorf("the enforcer of %s has not said %s yet", pod.Spec.NodeName, wanted)
				}
			}
			return nil
		})
	}
}

func texts(addrs []netip.Addr) []string {
	var all []string
	for _, addr := range addrs {
		all = append(all, addr.String())
	}
	return all
}

// refused asks every front once, all at once, and wants no answer.
func (r *rig) refused(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	fronts := r.Fronts(80, families...)
	answers := make(chan error)
	for _, front := range fronts {
		go func() {
			if answer, _ := r.ask(ctx, front); answer.Server != "" {
				answers <- fmt.Errorf("%s led to %s, which answered %s", front, answer.Server, answer.Client)
			} else {
				answers <- nil
			}
		}()
	}
	var errs []error
	for range fronts {
		errs = append(errs, <-answers)
	}
	return errors.Join(errs...)
}

// drops are what beep says on each node of the packets that it dropped.
func (r *rig) drops(ctx context.Context) map[string]string {
	GinkgoHelper()
	said := map[string]string{}
	for _, node := range r.Nodes() {
		said[node.Name] = r.beep(ctx, node.Name, "drops")
	}
	return said
}
