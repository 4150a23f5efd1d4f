// SPDX-License-Identifier: Apache-2.0

// Package cluster_scale is the rig of one real controller in a large cluster: a real API server, a hundred peers that
// are simulated, and a thousand Services. Invariant: what depends on the machine's speed is printed beside what was
// asked for, and fails only far beyond it; counts and ratios within the one run are held to the letter.
package cluster_scale_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/crowd"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/src/datapath/maps"
)

func TestClusterScale(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "rig cluster-scale")
}

var _ = It("is drawn in its README", func() { scene.CheckReadme(GinkgoT(), plan()) })

var _ = AfterSuite(func() { require.Report(os.Stdout) })

const (
	peers     = 100
	endpoints = 10 // of a Service
	// few and many are the numbers of Services that are compared.
	few, many = 100, 1000
	// changes is how many endpoints change one after the other, at each size.
	changes = 200
	// quiet is for how long nothing happens when it is looked who does something all the same.
	quiet = 20 * time.Second
	// slack is by how much a bound on time may be missed before a spec fails: the machine may be slow, and busy.
	slack = 10
	// limit ends whatever a spec waits for.
	limit = 5 * time.Minute

	node = "node-a"
)

func plan() topo.Plan { return cluster.Plan(1, topo.Options{Families: topo.V4}) }

// rig is the cluster of one real node and simulated peers.
type rig struct {
	*cluster.Cluster
	rows  *maps.Kernel
	crowd *crowd.Crowd
	stop  func()
}

// say prints a figure.
func say(format string, args ...any) {
	AddReportEntry(fmt.Sprintf(format, args...), ReportEntryVisibilityAlways)
}

func start() *rig {
	GinkgoHelper()
	cluster.Require(GinkgoT())
	c, err := cluster.Launch(cluster.Options{
		Plan: plan(), Control: kube.Options{Audit: true},
		Datapath: []string{"--max-fronts=2048", "--endpoints-per-front=16", "--node-allow-max-entries=256", "--pod-targets-max-entries=1024"},
	})
	Expect(err).NotTo(HaveOccurred())
	log := slog.New(slog.NewTextHandler(GinkgoWriter, nil))
	return &rig{Cluster: c, crowd: crowd.New(c.Control, node, peers, endpoints, log), stop: func() {}}
}

func (r *rig) close() {
	if r.rows != nil {
		Expect(r.rows.Close()).To(Succeed())
	}
	r.stop()
	Expect(r.Close()).To(Succeed())
}

func (r *rig) controller() *cluster.Controller { return r.Node(node).Controller }

// open opens the maps of the node as they are pinned now.
func (r *rig) open() {
	GinkgoHelper()
	if r.rows != nil {
		Expect(r.rows.Close()).To(Succeed())
	}
	var err error
	r.rows, err = maps.Open(r.Node(node).Datapath.PinDir())
	Expect(err).NotTo(HaveOccurred())
}

// counts are the endpoints of each front, by its port.
func (r *rig) counts() map[uint16]int {
	GinkgoHelper()
	fronts, err := r.rows.Fronts()
	Expect(err).NotTo(HaveOccurred())
	counts := map[uint16]int{}
	for _, front := range fronts {
		counts[front.Port] = int(front.Count)
	}
	return counts
}

// awaitFronts waits until the maps hold the fronts of so many Services, each whole.
func (r *rig) awaitFronts(ctx context.Context, services int) {
	GinkgoHelper()
	Eventually(ctx, func() int {
		counts, whole := r.counts(), 0
		for service := range services {
			if counts[crowd.PortOf(service)] == endpoints {
				whole++
			}
		}
		return whole
	}).WithTimeout(limit).WithPolling(50 * time.Millisecond).Should(Equal(services))
}

// awaitPublished waits until each of so many Services lists so many nodes.
func (r *rig) awaitPublished(ctx context.Context, services, nodes int) {
	GinkgoHelper()
	Eventually(ctx, func(ctx context.Context) (int, error) {
		list, err := r.Control.Client.CoreV1().Services(kube.Namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		published := 0
		for _, service := range list.Items {
			if len(service.Status.LoadBalancer.Ingress) == nodes {
				published++
			}
		}
		return published, err
	}).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(Equal(services))
}

// metric is the sum of the controller's series that begin so.
func (r *rig) metric(prefix string) float64 {
	GinkgoHelper()
	client := &http.Client{Transport: &http.Transport{DialContext: r.NS(node).DialContext, DisableKeepAlives: true}}
	response, err := client.Get("http://127.0.0.1:9963/metrics")
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, prefix) {
			words := strings.Fields(line)
			value, err := strconv.ParseFloat(words[len(words)-1], 64)
			Expect(err).NotTo(HaveOccurred())
			sum += value
		}
	}
	return sum
}

func (r *rig) awaitMetric(ctx context.Context, prefix string, value float64) {
	GinkgoHelper()
	Eventually(ctx, func() float64 { return r.metric(prefix) }).
		WithTimeout(limit).WithPolling(200*time.Millisecond).Should(Equal(value), prefix)
}

// writes are those of the controller that are no renewal of a Lease, since a number of them.
func (r *rig) writes(since int) []kube.Write {
	GinkgoHelper()
	writes, err := r.Control.Writes(r.controller().User())
	Expect(err).NotTo(HaveOccurred())
	writes = slices.DeleteFunc(writes, func(w kube.Write) bool { return w.Resource == "leases" })
	return writes[since:]
}

// begin starts the controller, waits until the maps are as desired, and returns how long that took.
func (r *rig) begin(ctx context.Context) time.Duration {
	GinkgoHelper()
	const ready = "ready: the maps are as desired"
	before, begin := strings.Count(r.controller().Log(), ready), time.Now()
	Expect(r.controller().Start()).To(Succeed())
	Expect(r.controller().Await(ctx, func(context.Context) error {
		if strings.Count(r.controller().Log(), ready) == before {
			return fmt.Errorf("it does not say %q", ready)
		}
		return nil
	})).To(Succeed())
	return time.Since(begin)
}

// patches are those of statuses since a number of writes: the most that any Service got, and all.
func (r *rig) patches(since int) (most, all int) {
	GinkgoHelper()
	each := map[string]int{}
	for _, w := range r.writes(since) {
		if w.Resource == "services/status" {
			each[w.Name]++
			most, all = max(most, each[w.Name]), all+1
		}
	}
	return most, all
}

// figures are what a number of changes came to.
type figures struct {
	took []time.Duration // each, sorted
	cost time.Duration   // CPU time of one change
	run  time.Duration   // of one run of the work on the maps, on average; the change itself, and what is left to clean up later
}

func (f figures) percentile(p int) time.Duration { return f.took[(len(f.took)-1)*p/100] }

func (f figures) String() string {
	return fmt.Sprintf("in the maps after %s (median), %s (p99), %s (all); CPU time %s a change, a run takes %s",
		f.percentile(50).Round(time.Millisecond), f.percentile(99).Round(time.Millisecond), f.percentile(100).Round(time.Millisecond), f.cost,
		f.run.Round(10*time.Microsecond))
}

// change changes endpoints of the first Services one after the other, each when the one before is in the maps.
func (r *rig) change(ctx context.Context, services int) figures {
	GinkgoHelper()
	pid := r.controller().Pid()
	f := figures{}
	runs := func() (sum, count float64) {
		return r.metric("beep_controller_reconcile_seconds_sum"), r.metric("beep_controller_reconcile_seconds_count")
	}
	sumBefore, countBefore := runs()
	before := busy(pid)
	for i := range changes {
		service := i * 7 % services
		begin := time.Now()
		want, err := r.crowd.Toggle(ctx, service)
		Expect(err).NotTo(HaveOccurred())
		Eventually(ctx, func() int { return r.counts()[crowd.PortOf(service)] }).
			WithTimeout(limit).WithPolling(5 * time.Millisecond).Should(Equal(want))
		f.took = append(f.took, time.Since(begin))
	}
	f.cost = (busy(pid) - before) / changes
	sum, count := runs()
	f.run = time.Duration((sum - sumBefore) / (count - countBefore) * float64(time.Second))
	slices.Sort(f.took)
	return f
}

var _ = Describe("a large cluster", Ordered, Label("cluster"), func() {
	var r *rig
	var small figures
	BeforeAll(func() {
		r = start()
		DeferCleanup(func() { r.close() })
	})
	JustBeforeEach(func() { r.Show(artifacts.New(GinkgoT(), r.Topology)) })

	It("costs a node without Services at most 40 MiB", func(ctx SpecContext) {
		Expect(r.controller().AwaitReady(ctx)).To(Succeed())
		r.awaitMetric(ctx, "beep_controller_leading", 1)
		r.open()
		m := memoryOf(r.controller().Pid())
		say("idle: %s; asked for: 40 MiB", m)
		Expect(m.All).To(BeNumerically("<=", 40*mib))
	}, SpecTimeout(limit))

	It("lists a hundred nodes that start at once in 100 Services, with at most two patches each", func(ctx SpecContext) {
		Expect(r.crowd.Post(ctx, 0, few)).To(Succeed())
		r.awaitPublished(ctx, few, 1)
		since, begin := len(r.writes(0)), time.Now()
		var err error
		r.stop, err = r.crowd.Simulate(ctx, 0, peers)
		Expect(err).NotTo(HaveOccurred())
		r.awaitPublished(ctx, few, peers+1)
		took := time.Since(begin)
		most, all := r.patches(since)
		say("%d nodes into %d Services: published %s after the first Node was posted; asked for: 10 s; at most %d patches a Service, %d in all",
			peers, few, took.Round(time.Millisecond), most, all)
		Expect(most).To(BeNumerically("<=", 2))
		Expect(took).To(BeNumerically("<", 10*time.Second*slack))
	}, SpecTimeout(limit))

	It("publishes 100 further Services on all nodes with one patch each", func(ctx SpecContext) {
		since, begin := len(r.writes(0)), time.Now()
		Expect(r.crowd.Post(ctx, few, 2*few)).To(Succeed())
		posted := time.Since(begin)
		r.awaitPublished(ctx, 2*few, peers+1)
		took := time.Since(begin)
		most, all := r.patches(since)
		say("%d Services x %d nodes: posted in %s, published in %s; asked for: 10 s; at most %d patches a Service, %d in all",
			few, peers+1, posted.Round(time.Millisecond), took.Round(time.Millisecond), most, all)
		Expect(most).To(BeNumerically("<=", 2))
		Expect(took).To(BeNumerically("<", 10*time.Second*slack))
		Expect(r.crowd.Remove(ctx, few)).To(Succeed())
		r.awaitFronts(ctx, few)
	}, SpecTimeout(limit))

	It("brings a change into the maps of 100 Services", func(ctx SpecContext) {
		small = r.change(ctx, few)
		say("%d Services: %s", few, small)
	}, SpecTimeout(limit))

	It("starts with 1,000 Services", func(ctx SpecContext) {
		begin := time.Now()
		Expect(r.crowd.Post(ctx, few, many)).To(Succeed())
		posted := time.Since(begin)
		r.awaitPublished(ctx, many, peers+1)
		say("%d Services more: posted in %s, published on %d nodes in %s", many-few, posted.Round(time.Millisecond), peers+1,
			time.Since(begin).Round(time.Millisecond))
		Expect(r.controller().Kill9()).To(Succeed())
		// From nothing: a node that was just booted.
		daemon := r.Node(node).Datapath
		Expect(daemon.Kill9()).To(Succeed())
		Expect(r.rows.Close()).To(Succeed())
		r.rows = nil
		Expect(daemon.Wipe()).To(Succeed())
		Expect(daemon.Restart()).To(Succeed())
		r.open()
		took := r.begin(ctx)
		say("%d Services x %d endpoints, %d peers: started in %s; asked for: 20 s; then %s", many, endpoints, peers,
			took.Round(time.Millisecond), memoryOf(r.controller().Pid()))
		Expect(took).To(BeNumerically("<", 20*time.Second*slack))
		r.awaitFronts(ctx, many)
		r.awaitMetric(ctx, "beep_controller_leading", 1)
		r.awaitMetric(ctx, `beep_controller_published_nodes{state="live"}`, peers+1)
		r.awaitPublished(ctx, many, peers+1)
	}, SpecTimeout(limit))

	It("takes over the maps of the controller before it as they are", func(ctx SpecContext) {
		Expect(r.controller().Kill9()).To(Succeed())
		took := r.begin(ctx)
		say("started beside full maps in %s; then %s", took.Round(time.Millisecond), memoryOf(r.controller().Pid()))
		Expect(memoryOf(r.controller().Pid()).All).To(BeNumerically("<=", 120*mib))
		Expect(r.metric(`beep_controller_steps_total{action="renewed"`)).To(Equal(r.metric("beep_controller_steps_total")), "steps but for a new epoch")
		r.awaitMetric(ctx, "beep_controller_leading", 1)
		r.awaitMetric(ctx, `beep_controller_published_nodes{state="live"}`, peers+1)
	}, SpecTimeout(limit))

	It("does nothing when nothing happens", func(ctx SpecContext) {
		pid := r.controller().Pid()
		since, steps, used := len(r.writes(0)), r.metric("beep_controller_steps_total"), busy(pid)
		Consistently(ctx, func() []kube.Write { return r.writes(since) }).WithTimeout(quiet).WithPolling(quiet / 4).Should(BeEmpty())
		used = busy(pid) - used
		say("idle at %d Services: %.2f %% of a core for %s; asked for: 1 %%; no write but of its Lease", many, 100*used.Seconds()/quiet.Seconds(), quiet)
		Expect(r.metric("beep_controller_steps_total")).To(Equal(steps), "steps in the maps")
		Expect(used).To(BeNumerically("<", quiet/100*slack))
	}, SpecTimeout(limit))

	It("brings a change into the maps of 1,000 Services for about the same", func(ctx SpecContext) {
		large := r.change(ctx, many)
		ratio := float64(large.cost) / float64(small.cost)
		say("%d Services: %s; asked for: 1 s (p99)", many, large)
		say("ten times the Services cost %.1f times the CPU time a change", ratio)
		Expect(large.percentile(99)).To(BeNumerically("<", time.Second*slack))
		Expect(ratio).To(BeNumerically("<", 4))
	}, SpecTimeout(limit))

	It("holds 1,000 Services in at most 120 MiB", func(ctx SpecContext) {
		m := memoryOf(r.controller().Pid())
		say("%d Services x %d endpoints, %d peers: %s; asked for: 120 MiB", many, endpoints, peers, m)
		Expect(m.All).To(BeNumerically("<=", 120*mib))
		// A conflict is the guard of a patch at work.
		Expect(r.writes(0)).To(HaveEach(HaveField("Code", Or(BeNumerically("<", 400), Equal(409)))), "what the API server did not take")
	}, SpecTimeout(limit))

	It("forgets 1,000 Services that are deleted", func(ctx SpecContext) {
		begin := time.Now()
		Expect(r.crowd.Remove(ctx, 0)).To(Succeed())
		deleted := time.Since(begin)
		Eventually(ctx, r.counts).WithTimeout(limit).WithPolling(100 * time.Millisecond).Should(BeEmpty())
		say("%d Services deleted in %s, out of the maps after %s", many, deleted.Round(time.Millisecond), time.Since(begin).Round(time.Millisecond))
		Eventually(ctx, func() (int, error) {
			rows, err := r.rows.Endpoints()
			return len(rows), err
		}).WithTimeout(limit).WithPolling(200*time.Millisecond).Should(BeZero(), "rows of endpoints")
		Expect(r.rows.Targets()).To(BeEmpty())
	}, SpecTimeout(limit))
})
