// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/beep-lb/beep/src/datapath/maps"
)

// Controller is the metrics and the health of one node's controller.
type Controller struct {
	registry  *prometheus.Registry
	ready     func() error
	latency   prometheus.Histogram
	failures  prometheus.Counter
	steps     *prometheus.CounterVec
	swept     *prometheus.CounterVec
	leftOut   *prometheus.GaugeVec
	objects   *prometheus.GaugeVec
	detached  prometheus.Gauge
	writes    *prometheus.CounterVec
	leading   prometheus.Gauge
	published *prometheus.GaugeVec
	isReady   prometheus.GaugeFunc
	buildInfo prometheus.Gauge
}

// NewController prepares to tell of a controller. ready says why the maps are not yet as desired, or nil if they have
// been once; it is called from any goroutine.
func NewController(version string, ready func() error) *Controller {
	c := &Controller{
		registry: prometheus.NewRegistry(),
		ready:    ready,
		// A reconcile of nothing takes a millisecond, one of a thousand fronts a second.
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{Name: reconcileName, Help: reconcileHelp,
			Buckets: []float64{.001, .003, .01, .03, .1, .3, 1, 3, 10}}),
		failures:  prometheus.NewCounter(prometheus.CounterOpts{Name: reconcileFailedName, Help: reconcileFailedHelp}),
		steps:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: stepsName, Help: stepsHelp}, []string{"object", "action"}),
		swept:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: departedName, Help: departedHelp}, []string{"kind"}),
		leftOut:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: leftOutName, Help: leftOutHelp}, []string{"reason"}),
		objects:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: objectsName, Help: objectsHelp}, []string{"kind"}),
		detached:  prometheus.NewGauge(prometheus.GaugeOpts{Name: detachedName, Help: detachedHelp}),
		writes:    prometheus.NewCounterVec(prometheus.CounterOpts{Name: statusWritesName, Help: statusWritesHelp}, []string{"result"}),
		leading:   prometheus.NewGauge(prometheus.GaugeOpts{Name: leadingName, Help: leadingHelp}),
		published: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: publishedName, Help: publishedHelp}, []string{"state"}),
		buildInfo: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: controllerInfoName, Help: controllerInfoHelp, ConstLabels: prometheus.Labels{
				"version": version, "abi": strconv.Itoa(maps.ABI), "go": runtime.Version()}}),
	}
	c.isReady = prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: controllerReadyName, Help: controllerReadyHelp}, func() float64 {
		if ready() != nil {
			return 0
		}
		return 1
	})
	c.buildInfo.Set(1)
	c.registry.MustRegister(c.latency, c.failures, c.steps, c.swept, c.leftOut, c.objects, c.detached,
		c.writes, c.leading, c.published, c.isReady, c.buildInfo,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

// Reconciled counts one run that brought the maps to the desired state, or failed to.
func (c *Controller) Reconciled(took time.Duration, err error) {
	c.latency.Observe(took.Seconds())
	if err != nil {
		c.failures.Inc()
	}
}

// Stepped counts one change of the maps, by what it was about and what happened to it.
func (c *Controller) Stepped(object, action string) { c.steps.WithLabelValues(object, action).Inc() }

// Swept counts rows that went because of their endpoint, by its reason.
func (c *Controller) Swept(kind string, rows int) { c.swept.WithLabelValues(kind).Add(float64(rows)) }

// LeftOut replaces how many things are left out, by the name of the reason.
func (c *Controller) LeftOut(counts map[string]int) {
	c.leftOut.Reset()
	for reason, count := range counts {
		c.leftOut.WithLabelValues(reason).Set(float64(count))
	}
}

// Known replaces how many objects of each kind are known.
func (c *Controller) Known(services, slices, nodes int) {
	c.objects.WithLabelValues("Service").Set(float64(services))
	c.objects.WithLabelValues("EndpointSlice").Set(float64(slices))
	c.objects.WithLabelValues("Node").Set(float64(nodes))
}

// Detached replaces how many other nodes expect no tunnel.
func (c *Controller) Detached(nodes int) { c.detached.Set(float64(nodes)) }

// StatusWrite counts one write of a Service's status, by what came of it.
func (c *Controller) StatusWrite(result string) { c.writes.WithLabelValues(result).Inc() }

// Leading says whether this node publishes.
func (c *Controller) Leading(is bool) {
	if is {
		c.leading.Set(1)
		return
	}
	c.leading.Set(0)
	c.published.Reset() // another one knows
}

// Published replaces how many nodes are live, and how many of them are lost and held; only the publisher knows.
func (c *Controller) Published(live, held int) {
	c.published.WithLabelValues("live").Set(float64(live))
	c.published.WithLabelValues("held").Set(float64(held))
}

// LeaseAge adds a gauge of the age of this node's Lease, in seconds. age is called while a request waits.
func (c *Controller) LeaseAge(age func() time.Duration) {
	c.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: leaseAgeName, Help: leaseAgeHelp},
		func() float64 { return age().Seconds() }))
}

// Handler serves the paths of Telemetry.Handler.
func (c *Controller) Handler() http.Handler { return handler(c.registry, c.ready) }
