// SPDX-License-Identifier: Apache-2.0

// Command flannel-delegate does once what flannel's plugin does for every pod: it composes what the bridge plugin is to do out
// of what flanneld found. Invariant: the runtime sees all of the file or nothing of it.
//
//	flannel-delegate [-subnets /run/flannel/subnet.env] [-out /etc/cni/net.d/10-flannel.conflist]
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/beep-lb/beep/harness/vm/node/podnet"
)

func main() {
	subnets := flag.String("subnets", "/run/flannel/subnet.env", "what flanneld wrote")
	out := flag.String("out", "/etc/cni/net.d/10-flannel.conflist", "configuration list to write")
	flag.Parse()
	if err := run(*subnets, *out); err != nil {
		fmt.Fprintln(os.Stderr, "flannel-delegate:", err)
		os.Exit(1)
	}
}

func run(subnets, out string) error {
	env, err := os.ReadFile(subnets)
	if err != nil {
		return err
	}
	network, err := podnet.FromFlannel(string(env))
	if err != nil {
		return err
	}
	text, err := network.Conflist()
	if err != nil {
		return err
	}
	if err := os.WriteFile(out+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(out+".new", out)
}
