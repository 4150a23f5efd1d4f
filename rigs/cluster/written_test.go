// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
)

// statusWrites are the writes of statuses of the spec's Services by beep.
func (r *rig) statusWrites() []kube.Write {
	GinkgoHelper()
	writes, err := r.Control.Writes(cluster.UserPrefix)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(writes, func(w kube.Write) bool {
		return w.Resource != "services/status" || w.Namespace != r.namespace
	})
}

// writes are those of all controllers, but for their Leases: those are renewed all the time.
func (r *rig) writes() []kube.Write {
	GinkgoHelper()
	writes, err := r.Control.Writes(cluster.UserPrefix)
	Expect(err).NotTo(HaveOccurred())
	return slices.DeleteFunc(writes, func(w kube.Write) bool { return w.Resource == "leases" })
}

// history is every list that the Service's status had.
type history struct {
	mu    sync.Mutex
	lists [][]corev1.LoadBalancerIngress
}

// follow notes every list from now on. A watch misses none that the API server had.
func (r *rig) follow() *history {
	GinkgoHelper()
	service, err := r.services().Get(r.ctx, app, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	h := &history{lists: [][]corev1.LoadBalancerIngress{service.Status.LoadBalancer.Ingress}}
	ctx, cancel := context.WithCancel(r.ctx)
	events, err := r.services().Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", app).String(), ResourceVersion: service.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	var following sync.WaitGroup
	following.Go(func() {
		for event := range events.ResultChan() {
			if service, ok := event.Object.(*corev1.Service); ok {
				h.mu.Lock()
				h.lists = append(h.lists, service.Status.LoadBalancer.Ingress)
				h.mu.Unlock()
			}
		}
	})
	DeferCleanup(func() {
		cancel()
		events.Stop()
		following.Wait()
	})
	return h
}

// last is the list of the moment.
func (h *history) last() []corev1.LoadBalancerIngress {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lists[len(h.lists)-1]
}

// neverEmpty expects that no list was without an entry.
func (h *history) neverEmpty() {
	GinkgoHelper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var texts []string
	for _, list := range h.lists {
		text := ""
		for _, entry := range list {
			text += " " + entry.IP
		}
		texts = append(texts, text)
	}
	AddReportEntry("lists", fmt.Sprintf("%q", slices.Compact(slices.Clone(texts))))
	Expect(texts).NotTo(ContainElement(""))
}
