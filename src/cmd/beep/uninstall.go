// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/signal"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/nodeprep"
)

type uninstallCommand struct{ config.Uninstall }

// Run takes beep off the node, and says what stays. It does nothing while a daemon is there, which would put it back.
func (u *uninstallCommand) Run(c console) error {
	if err := u.clear(c); err != nil {
		return explainPermission(err)
	}
	removed, err := nodeprep.Host.Forget()
	if err != nil {
		return explainPermission(err)
	}
	if removed {
		fmt.Fprintf(c.out, "removed %s\n", filepath.Join(nodeprep.Host.Persistent, nodeprep.FileName))
	}
	_, err = fmt.Fprintln(c.out, "what stays until the next boot: rp_filter of the uplinks as it is, and tx-udp-segmentation off "+
		"where the log of `beep run` said so")
	if err == nil && u.Stay {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		defer stop()
		<-ctx.Done()
	}
	return err
}

// clear takes the programs off the devices and the maps away.
func (u *uninstallCommand) clear(c console) error {
	dir, err := pinfs.Open(u.PinDir)
	if errors.Is(err, fs.ErrNotExist) {
		_, err := fmt.Fprintf(c.out, "nothing is loaded at %s\n", u.PinDir)
		return err
	}
	if err != nil {
		return err
	}
	held, err := dir.Lock()
	if err != nil {
		return fmt.Errorf("%w: stop `beep run` first (kubectl delete -k deploy/base)", err)
	}
	defer held.Unlock() //nolint:errcheck // the directory is gone, or the error is the other one
	links, err := dir.Links()
	if err != nil {
		return err
	}
	if err := dir.Clear(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.out, "removed %d links and the maps at %s\n", len(links), u.PinDir)
	return err
}
