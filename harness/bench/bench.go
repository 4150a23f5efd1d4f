// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
)

// Effort says how much a run measures.
type Effort struct {
	// Totals are the numbers of Services, rising; every way is measured at the first and the last.
	Totals []int
	// Variants are who is compared.
	Variants []Variant
	// Ways are those that are measured at the first and at the last number, IPv4 to the remote pod at all of them.
	Ways []Way
	// Each, Connections and Rounds are as in Block; Limit is that of one Block.
	Each, Connections, Rounds, Least int
	Limit                            time.Duration
	// Lasts, RateRounds and RateLimit are as in Rates.
	Lasts      time.Duration
	RateRounds int
	RateLimit  time.Duration
	// Curves are measured on the ingress node alone.
	Curves []Curve
	// Scale is what is asked of controllers.
	Scale Scale
}

var everyWay = []Way{
	{Path: Remote, Family: topo.V4}, {Path: Remote, Family: topo.V6}, {Path: Local, Family: topo.V4}, {Path: Local, Family: topo.V6},
}

// The efforts: ten minutes, two minutes, and a few seconds that only show that all of it works.
var (
	Full = Effort{
		Totals: []int{1, 1000, 10000}, Variants: Variants, Ways: everyWay,
		Each: 100, Connections: 200, Rounds: 60, Least: 5, Limit: 20 * time.Second,
		Lasts: 250 * time.Millisecond, RateRounds: 15, RateLimit: 25 * time.Second,
		Curves: curves(6, 4096, 30, 15*time.Second),
		Scale:  Scale{Services: []int{10, 100, 1000, 10000}, Changes: 20, Nodes: []int{10, 100, 1000}, Listed: 100},
	}
	Quick = Effort{
		Totals: []int{1, 1000}, Variants: Variants, Ways: []Way{everyWay[0], everyWay[2]},
		Each: 100, Connections: 100, Rounds: 20, Least: 3, Limit: 8 * time.Second,
		Lasts: 100 * time.Millisecond, RateRounds: 5, RateLimit: 8 * time.Second,
		Curves: curves(4, 2048, 10, 4*time.Second),
		Scale:  Scale{Services: []int{10, 1000}, Changes: 5, Nodes: []int{10, 100}, Listed: 10},
	}
	Tiny = Effort{
		Totals: []int{1, 101}, Variants: Variants, Ways: everyWay,
		Each: 2, Connections: 4, Rounds: 1, Least: 1,
		Lasts: 10 * time.Millisecond, RateRounds: 1,
		Curves: curves(1, 64, 1, 0)[:1],
		Scale:  Scale{Services: []int{2}, Changes: 1, Nodes: []int{2}, Listed: 2},
	}
)

// curves are those of an ingress node, up to ten to the power of decades flows; of fronts that is at most 10,000, of endpoints 1,000.
func curves(decades, packets, rounds int, limit time.Duration) []Curve {
	all := []Curve{{Name: "flows"}, {Name: "fronts"}, {Name: "endpoints"}}
	for decade, n := 0, 1; decade <= decades; decade, n = decade+1, 10*n {
		if decade != 1 && decade != 2 { // there is nothing to see between one flow and a thousand
			all[0].Sizes = append(all[0].Sizes, Size{Fronts: 1, Endpoints: 1, Flows: n})
		}
		if decade <= 4 && decade != 1 {
			all[1].Sizes = append(all[1].Sizes, Size{Fronts: n, Endpoints: 1, Flows: 10000})
		}
		if decade <= 3 {
			all[2].Sizes = append(all[2].Sizes, Size{Fronts: 1, Endpoints: n, Flows: 1000})
		}
	}
	for i := range all {
		all[i].Packets, all[i].Rounds, all[i].Least, all[i].Limit = packets, rounds, min(rounds, 3), limit
	}
	return all
}

// flowCount is how many UDP flows a sample has, and load the requests a second under which latency is measured: far from what one
// core can do.
const flowCount, load = 32, 1000

// Run measures everything and writes it down. Say is told what is going on, for people who wait.
func Run(ctx context.Context, effort Effort, out *Record, say func(format string, args ...any)) (err error) {
	r := &run{Effort: effort, out: out, say: say}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, step := range []func(context.Context) error{r.balancers, r.curves, r.controllers} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return out.Err()
}

// run is a run under way.
type run struct {
	Effort
	out      *Record
	say      func(format string, args ...any)
	control  *kube.ControlPlane
	stands   []*Stand
	restored Services
}

func (r *run) close() error {
	var errs []error
	for _, stand := range r.stands {
		errs = append(errs, stand.Close())
	}
	r.stands = nil
	if r.control != nil {
		errs = append(errs, r.control.Close())
	}
	r.control = nil
	return errors.Join(errs...)
}

// balancers compares all variants on every way, with few Services and with many.
func (r *run) balancers(ctx context.Context) error {
	if err := r.buildStands(ctx); err != nil {
		return err
	}
	for i, total := range r.Totals {
		services := Of(total)
		if err := r.serve(ctx, services, i); err != nil {
			return err
		}
		ways := r.Ways[:1]
		if i == 0 || i == len(r.Totals)-1 {
			ways = r.Ways
		}
		for _, way := range ways {
			way.Services = services.Dialled
			r.say("CPU time with %d Services, %s", total, way)
			block := Block{
				Way: way, Total: total, Flows: flowCount, Each: r.Each, Size: smallest, Connections: r.Connections,
				Rounds: r.Rounds, Least: r.Least, Limit: r.Limit,
			}
			if err := block.Run(ctx, r.stands, r.out); err != nil {
				return err
			}
			if i > 0 {
				continue
			}
			if err := r.dissect(block); err != nil {
				return err
			}
			if way.Path != Remote {
				continue
			}
			r.say("rates with %d Services, %s", total, way)
			rates := Rates{Way: way, Total: total, Lasts: r.Lasts, Load: load, Rounds: r.RateRounds, Least: 1, Limit: r.RateLimit}
			if err := rates.Run(ctx, r.stands, r.out); err != nil {
				return err
			}
		}
	}
	return r.judge()
}

// buildStands builds the stands of all variants, and what feeds kube-proxy.
func (r *run) buildStands(ctx context.Context) (err error) {
	r.say("building %d networks", len(r.Variants))
	if r.control, err = kube.Launch(kube.Options{}); err != nil {
		return err
	}
	// There is nothing here for it to do, and it looks at every Service all the same.
	if err := r.control.ControllerManager.Terminate(); err != nil {
		return err
	}
	most := r.Totals[len(r.Totals)-1]
	flags := []string{
		// Every Service has a front of each family on each node, and a pod behind each.
		fmt.Sprintf("--max-fronts=%d", 2*most+64), fmt.Sprintf("--pod-targets-max-entries=%d", 2*most+64),
	}
	stands := make([]*Stand, len(r.Variants))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(2) // the verifier keeps a core busy for each
	for i, variant := range r.Variants {
		group.Go(func() (err error) {
			stands[i], err = Build(ctx, variant, r.control, flags...)
			return err
		})
	}
	err = group.Wait()
	for _, stand := range stands {
		if stand != nil {
			r.stands = append(r.stands, stand)
		}
	}
	return err
}

// serve has all stands serve so many Services.
func (r *run) serve(ctx context.Context, services Services, number int) error {
	r.say("%d Services, and waiting for who serves them", services.Total)
	if err := r.restore(ctx, services, number); err != nil {
		return err
	}
	for _, stand := range r.stands {
		began := time.Now()
		if err := stand.Serve(ctx, services, number); err != nil {
			return err
		}
		r.out.Note("%s serves %d Services after %s", stand.Variant, services.Total, time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// restore has the API server know so many Services, while nobody listens.
func (r *run) restore(ctx context.Context, services Services, number int) error {
	for _, stand := range r.stands {
		if err := stand.pause(true); err != nil {
			return err
		}
	}
	if err := services.Restore(ctx, r.control, r.restored); err != nil {
		return err
	}
	r.restored = services
	last := marker(number)
	if err := r.control.Restore(ctx, last.objects()...); err != nil {
		return err
	}
	for _, stand := range r.stands {
		if err := stand.pause(false); err != nil {
			return err
		}
	}
	return nil
}

// curves measures what grows on an ingress node.
func (r *run) curves(ctx context.Context) error {
	for _, curve := range r.Curves {
		r.say("CPU time on the ingress node by the number of %s", curve.Name)
		if err := curve.Run(ctx, r.out); err != nil {
			return err
		}
	}
	return nil
}

// controllers measures what grows with a cluster. The stands are no longer needed, and their programs would disturb.
func (r *run) controllers(ctx context.Context) error {
	if err := r.close(); err != nil {
		return err
	}
	return errors.Join(r.Scale.reconciling(ctx, r.out, r.say), r.Scale.publishing(ctx, r.out, r.say))
}

// dissect looks into beep's programs.
func (r *run) dissect(block Block) error {
	for _, stand := range r.stands {
		if stand.Variant == Beep {
			return block.Dissect(stand, r.out)
		}
	}
	return nil
}

// judge sees that beep has dropped nothing, and that connections are tracked where kube-proxy is and nowhere else.
func (r *run) judge() error {
	for _, stand := range r.stands {
		drops, err := stand.Drops()
		if err != nil {
			return err
		}
		if len(drops) > 0 {
			return fmt.Errorf("stand %s: beep has dropped %v", stand.Variant, drops)
		}
		_, tracks := proxyOf[stand.Variant]
		var counts []string
		for _, node := range stand.nodes() {
			count, err := stand.Tracked(node)
			if err != nil {
				return err
			}
			counts = append(counts, count)
		}
		if tracks == (counts[len(counts)-1] == "0") {
			return fmt.Errorf("stand %s: connections tracked on its nodes: %s", stand.Variant, strings.Join(counts, ", "))
		}
		r.out.Note("%s: connections tracked on node-a and node-b: %s", stand.Variant, strings.Join(counts, ", "))
	}
	return nil
}
