// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/datapath/probe"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
	"github.com/beep-lb/beep/src/nodeprep"
)

// nodePrepCommand takes the flags of `beep run`, so that both see the same environment and what is wrong with it is
// told before the daemon starts.
type nodePrepCommand struct{ config.Datapath }

// Run checks what beep needs of the node, all at once, and then changes what it may.
func (n *nodePrepCommand) Run(c console) error {
	report := probe.Run()
	host, err := netdev.Open()
	if err != nil {
		return err
	}
	defer host.Close()
	links, err := findUplinks(host, &n.Datapath, model.Desired{})
	warnings, unfit := nodeprep.LookAtProxy(context.Background()).Judge()
	if err := errors.Join(report.Err(), pinfs.Check(n.PinDir), err, unfit); err != nil {
		return err
	}
	for _, warning := range append(report.Warnings, warnings...) {
		fmt.Fprintln(c.out, "warning:", warning)
	}
	var names []string
	for _, link := range links {
		names = append(names, link.Name)
	}
	changes, err := nodeprep.Host.LoosenReversePath(names)
	for _, change := range changes {
		fmt.Fprintln(c.out, "changed", change)
	}
	if err == nil {
		fmt.Fprintf(c.out, "this node is fit for beep on %s\n", strings.Join(names, ", "))
	}
	return err
}
