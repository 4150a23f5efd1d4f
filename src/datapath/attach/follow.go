// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"context"
	"time"

	"github.com/beep-lb/beep/src/netdev"
)

// retryPause is the wait before an uplink that refused the programs is tried again.
const retryPause = 500 * time.Millisecond

// Follow keeps the programs on the uplinks of the last Attach, by name, until ctx ends or events closes: a device
// that comes back gets programs with the constants that it now needs, and one that goes loses its pins. events come
// from netdev's Watch, whose first report of every device also shows what happened since Attach. It blocks, and
// must run in the devices' namespace.
func (u *Uplinks) Follow(ctx context.Context, events <-chan netdev.Event) {
	retry := time.NewTicker(retryPause)
	defer retry.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case event, open := <-events:
			if !open {
				return
			}
			u.take(event)
		case <-retry.C:
			u.retry()
		}
	}
}

// take does what one event asks for.
func (u *Uplinks) take(event netdev.Event) {
	had, wanted := u.wanted[event.Link.Name]
	if !wanted {
		return
	}
	switch event.Kind {
	case netdev.Vanished:
		if had.Index != event.Link.Index {
			return // an older device of that name
		}
		u.log.Warn("uplink is gone, waiting for it to come back", "uplink", had.Name, "ifindex", had.Index)
		u.forget(had)
	case netdev.Appeared, netdev.Changed:
		_, failed := u.failed[event.Link.Name]
		if had.Index == event.Link.Index && had.Type == event.Link.Type && !failed {
			return // attached already, and its frames look as they did
		}
		if had.Index != 0 && had.Index != event.Link.Index {
			u.forget(had)
		}
		u.wanted[event.Link.Name] = event.Link
		u.reattach(event.Link)
	}
}

// forget drops the pins of a device that is gone, or is an uplink no longer.
func (u *Uplinks) forget(had netdev.Link) {
	if err := u.detach(had.Index); err != nil {
		u.log.Error("pins of a gone uplink stay", "uplink", had.Name, "error", err)
	}
	u.wanted[had.Name] = netdev.Link{Name: had.Name}
	delete(u.failed, had.Name)
}

// reattach puts new programs on a device. A failure is told once, and tried again.
func (u *Uplinks) reattach(uplink netdev.Link) {
	programs, err := u.instances(uplink)
	if err == nil {
		err = u.put(uplink, programs)
		programs.Close()
	}
	if err == nil {
		delete(u.failed, uplink.Name)
		return
	}
	if u.failed[uplink.Name] != err.Error() {
		u.log.Error("uplink has no programs, trying on", "uplink", uplink.Name, "error", err)
	}
	u.failed[uplink.Name] = err.Error()
}

// retry tries the uplinks that failed.
func (u *Uplinks) retry() {
	for name := range u.failed {
		u.reattach(u.wanted[name])
	}
}
