// SPDX-License-Identifier: Apache-2.0

// Command bench measures what beep costs beside kube-proxy and beside no load balancer at all, and writes a record that the report
// (harness/bench/report) and benchstat read. Invariant: it ends by itself within the time that its effort names, and leaves nothing
// behind, neither when it ends nor when it is interrupted.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/bench"
)

func main() {
	quick := flag.Bool("quick", false, "two minutes instead of ten: fewer Services, ways and rounds")
	path := flag.String("out", "", "file to write the record to")
	flag.Parse()
	effort, limit := bench.Full, 20*time.Minute
	if *quick {
		effort, limit = bench.Quick, 4*time.Minute
	}
	// A pipe that nobody reads any longer loses words, not the cleanup. It is no reason to end either: Go tells of connections
	// that a peer has closed by the same signal.
	signal.Ignore(unix.SIGPIPE)
	// Whatever a person ends a program by: each must find the way through the cleanup.
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	ctx, cancel := context.WithTimeout(ctx, limit)
	err := run(ctx, effort, *path)
	cancel()
	stop() // not before the cleanup is done, so that a second signal cannot cut it short
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, effort bench.Effort, path string) (err error) {
	if unix.Geteuid() != 0 {
		return errors.New("namespaces and eBPF need root: run it as root")
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	out := bufio.NewWriter(file)
	defer func() { err = errors.Join(err, out.Flush(), file.Close()) }()
	began := time.Now()
	return bench.Run(ctx, effort, bench.NewRecord(out), func(format string, args ...any) {
		fmt.Printf("%4.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	})
}
