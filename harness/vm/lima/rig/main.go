// SPDX-License-Identifier: Apache-2.0

// Command rig runs a rig in a machine of Lima: what `RIG_PROVIDER=lima make rig-NAME` does. Invariant: its exit code is 0
// only if the rig passed there.
//
//	rig NAME
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/beep-lb/beep/harness/vm/lima"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: rig NAME")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := lima.Rig(ctx, os.Args[1], os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "rig-%s in a machine of Lima: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}
