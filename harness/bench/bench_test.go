// SPDX-License-Identifier: Apache-2.0

package bench_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/bench"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

func TestIsDrawnInItsReadme(t *testing.T) { scene.CheckReadme(t, bench.Plan(string(bench.Beep))) }

// The machinery alone: every variant carries every kind of work on every way, as the servers count it.
func TestEveryVariantDoesAllOfItsWork(t *testing.T) {
	require.Root(t)
	require.TCX(t)
	_, err := kube.FindBinaries()
	require.That(t, "Kubernetes programs", err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var out bytes.Buffer
	if err := bench.Run(ctx, bench.Tiny, bench.NewRecord(&out), t.Logf); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	for _, variant := range bench.Variants {
		for _, way := range bench.Tiny.Ways {
			for _, what := range []string{"Packet/dir=in", "Packet/dir=out", "Segment", "Connection"} {
				for _, total := range bench.Tiny.Totals {
					want := fmt.Sprintf("\nBenchmark%s/%s/services=%d/variant=%s ", what, way, total, variant)
					if n := bytes.Count(out.Bytes(), []byte(want)); n != 1 {
						t.Errorf("%d samples of %q, want 1", n, want[1:])
					}
				}
			}
		}
	}
	for _, want := range []string{
		"\nBenchmarkFlood/", "\nBenchmarkStream/", "\nBenchmarkConnections/", "\nBenchmarkRequest/", "\nBenchmarkProgram/", "\nBenchmarkIngress/", "\nBenchmarkMemory/",
		"\nBenchmarkController/services=2 ", "\nBenchmarkPublisher/services=2/nodes=2 ",
	} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("no sample of %q", want[1:])
		}
	}
	if t.Failed() {
		t.Logf("%s", out.Bytes())
	}
}

func TestSinkCountsEveryPacket(t *testing.T) {
	require.Root(t)
	require.TCX(t)
	var out bytes.Buffer
	curve := bench.Curve{
		Name: "flows", Sizes: []bench.Size{{Fronts: 1, Endpoints: 1, Flows: 1}, {Fronts: 7, Endpoints: 3, Flows: 2000}},
		Packets: 640, Rounds: 1, Least: 1,
	}
	if err := curve.Run(t.Context(), bench.NewRecord(&out)); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	if n := bytes.Count(out.Bytes(), []byte("\nBenchmarkIngress/curve=flows/flow=")); n != 4 {
		t.Errorf("%d samples, want 4\n%s", n, out.Bytes())
	}
}
