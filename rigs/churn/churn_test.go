// SPDX-License-Identifier: Apache-2.0

// Package churn is the rig of endpoints that come and go, and of what a front asks of its clients while flows run.
// Invariant: every server says which pod it is, so an answer from a pod that is not the dialled front's is seen.
package churn_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/src/model"
)

func TestChurn(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig churn")
}

var _ = AfterSuite(func() { require.Report(GinkgoWriter) })

// limit ends whatever a spec waits for.
const limit = 30 * time.Second

// served is the port on which every pod serves HTTP and datagrams; x and y are the ports of two Services of both
// protocols.
const (
	served = 8080
	x      = 80
	y      = 81
)

func plan() topo.Plan { return topo.TwoNodes(topo.Options{Pods: 3}) }

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

// rig is two nodes, all of whose pods serve and tell their names.
type rig struct {
	*scene.Scene
	pods map[string]*server
	x, y truth
	// edit changes Service x before it is used; nil leaves it.
	edit func(*beep.Service)
}

func newRig(offload scene.Offload) *rig {
	r := &rig{Scene: scene.New(GinkgoT(), plan(), offload), pods: map[string]*server{}}
	Expect(r.Evidence.CaptureAll()).To(Succeed())
	for _, pod := range r.Pods {
		r.start(pod.Name, pod.Name)
	}
	return r
}

// start starts the servers of a pod, which say the name.
func (r *rig) start(pod, name string) {
	GinkgoHelper()
	s := &server{}
	for _, addr := range r.Addrs(pod) {
		at := netip.AddrPortFrom(addr, served)
		stop, err := traffic.ServeHTTP(r.NS(pod), name, at)
		Expect(err).NotTo(HaveOccurred())
		s.stops = append(s.stops, stop)
		stop, err = serveNames(r.NS(pod), name, at)
		Expect(err).NotTo(HaveOccurred())
		s.stops = append(s.stops, stop)
	}
	r.pods[pod] = s
}

// server is what runs in a pod.
type server struct{ stops []func() error }

func (s *server) stop() {
	GinkgoHelper()
	for _, stop := range s.stops {
		Expect(stop()).To(Succeed())
	}
}

// options are those of a daemon with these pods behind the Services.
func (r *rig) options(behindX, behindY []string) beep.Options {
	var services []beep.Service
	for port, pods := range map[uint16][]string{x: behindX, y: behindY} {
		for _, proto := range []model.Proto{model.TCP, model.UDP} {
			service := beep.Service{Proto: proto, Port: port, TargetPort: served, Pods: pods}
			if port == x && r.edit != nil {
				r.edit(&service)
			}
			services = append(services, service)
		}
	}
	return beep.Options{Services: services}
}

// begin starts beep with these pods behind the Services.
func (r *rig) begin(behindX, behindY []string) {
	GinkgoHelper()
	r.x.becomes(behindX)
	r.y.becomes(behindY)
	r.Beep(r.options(behindX, behindY))
}

// change changes the pods behind the Services on all nodes. Until it returns, those of before may answer too.
func (r *rig) change(behindX, behindY []string) {
	GinkgoHelper()
	r.x.becomes(slices.Concat(r.x.now(), behindX))
	r.y.becomes(slices.Concat(r.y.now(), behindY))
	Expect(beep.ChangeAll(r.Nodes, r.Topology, r.options(behindX, behindY))).To(Succeed())
	r.x.becomes(behindX)
	r.y.becomes(behindY)
}

// front is a Service's port on node-a, which all clients dial.
func (r *rig) front(family topo.Families, port uint16) netip.AddrPort {
	return netip.AddrPortFrom(r.Addr("node-a", family), port)
}

// truth is which pods may answer for a Service, over time.
type truth struct{ spans []span }

type span struct {
	from time.Time
	pods []string
}

func (t *truth) becomes(pods []string) { t.spans = append(t.spans, span{time.Now(), pods}) }

func (t *truth) now() []string { return t.spans[len(t.spans)-1].pods }

// allowed are the pods that may have answered a question of this time, when the answer came.
func (t *truth) allowed(asked, answered time.Time) []string {
	var pods []string
	for i, s := range t.spans {
		ended := i+1 < len(t.spans) && t.spans[i+1].from.Before(asked)
		if !ended && s.from.Before(answered) {
			pods = append(pods, s.pods...)
		}
	}
	return pods
}

// check fails for the first answer from a pod that could not be one of the Service's.
func (t *truth) check(what string, answers []answer) {
	GinkgoHelper()
	for i, a := range answers {
		if allowed := t.allowed(a.asked, a.came); !slices.Contains(allowed, a.pod) {
			Fail(fmt.Sprintf("%s: answer %d of %d, to a question of %s, came from %s and not from one of %v",
				what, i, len(answers), a.asked.Format(time.StampMicro), a.pod, allowed))
		}
	}
}
