// SPDX-License-Identifier: Apache-2.0

// Command pause holds the namespaces of a pod: it waits until it is told to end, and does nothing else. Invariant: as the
// first process of a pod's pid namespace it reaps what is orphaned there.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for arrived := range signals {
		if arrived != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 || err != nil {
				break
			}
		}
	}
}
