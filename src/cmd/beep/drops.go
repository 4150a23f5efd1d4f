// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
)

type dropsCommand struct {
	config.Inspect
	All   bool `name:"all" help:"Show reasons that never occurred, too."`
	Watch bool `name:"watch" help:"Print what is dropped each second, until interrupted."`
}

// dropOutput is an element of `beep drops -o json`, and of each line of `beep drops --watch -o json`, where the
// counts are those of one second.
type dropOutput struct {
	// Reason is the short name, as in the metrics.
	Reason string `json:"reason"`
	// Direction is "ingress" or "egress".
	Direction string `json:"direction"`
	Packets   uint64 `json:"packets"`
	// Bytes are as the program saw the packets, link layer included.
	Bytes uint64 `json:"bytes"`
	// Meaning is the reason in words, and what to do.
	Meaning string `json:"meaning"`
}

func (d *dropsCommand) Run(c console) error {
	return read(d.PinDir, func(_ *pinfs.Dir, kernel *maps.Kernel) error {
		rows, err := kernel.Drops()
		if err != nil {
			return err
		}
		if d.Watch {
			return d.watch(c, kernel, rows)
		}
		return d.print(c, d.outputs(rows))
	})
}

// outputs leaves out what did not occur, unless all is asked for.
func (d *dropsCommand) outputs(rows []maps.DropRow) []dropOutput {
	out := []dropOutput{}
	for _, row := range rows {
		if row.Packets > 0 || d.All {
			out = append(out, dropOutput{row.Reason.String(), row.Direction.String(), row.Packets, row.Bytes, row.Reason.Words()})
		}
	}
	return out
}

func (d *dropsCommand) print(c console, drops []dropOutput) error {
	if d.JSON() {
		return c.json(drops)
	}
	var rows [][]string
	for _, drop := range drops {
		rows = append(rows, []string{drop.Reason, drop.Direction, number(drop.Packets), number(drop.Bytes), drop.Meaning})
	}
	return c.table("REASON DIRECTION PACKETS BYTES MEANING", rows)
}

// watch prints the difference to the previous second.
func (d *dropsCommand) watch(c console, kernel *maps.Kernel, before []maps.DropRow) error {
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case at := <-ticks.C:
			now, err := kernel.Drops()
			if err != nil {
				return err
			}
			if err := d.printSecond(c, at, d.outputs(since(before, now))); err != nil {
				return err
			}
			before = now
		}
	}
}

// since subtracts counters; both lists have the same rows in the same order.
func since(before, now []maps.DropRow) []maps.DropRow {
	var rows []maps.DropRow
	for i, row := range now {
		row.Packets -= before[i].Packets
		row.Bytes -= before[i].Bytes
		rows = append(rows, row)
	}
	return rows
}

// printSecond prints one line a reason, or one for none; in JSON one line in all.
func (d *dropsCommand) printSecond(c console, at time.Time, drops []dropOutput) error {
	if d.JSON() {
		return c.line(drops)
	}
	clock := at.Format(time.TimeOnly)
	if len(drops) == 0 {
		_, err := fmt.Fprintf(c.out, "%s  no drops\n", clock)
		return err
	}
	for _, drop := range drops {
		_, err := fmt.Fprintf(c.out, "%s  %-17s %-8s %8d packets/s %11d bytes/s\n",
			clock, drop.Reason, drop.Direction, drop.Packets, drop.Bytes)
		if err != nil {
			return err
		}
	}
	return nil
}
