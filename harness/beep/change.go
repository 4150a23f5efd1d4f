// SPDX-License-Identifier: Apache-2.0

package beep

import (
	"errors"
	"sync"

	"github.com/beep-lb/beep/harness/topo"
)

// Change ends the process by SIGTERM and starts it with other options on the pins that are there. It returns when it
// serves by them. The Evidence of the options is not used.
func (d *Daemon) Change(topology *topo.Topology, o Options) error {
	if err := d.Terminate(); err != nil {
		return err
	}
	d.args = o.flags(topology, d.node)
	return d.Restart()
}

// ChangeAll changes all of the daemons at once.
func ChangeAll(daemons map[string]*Daemon, topology *topo.Topology, o Options) error {
	var (
		changing sync.WaitGroup
		mu       sync.Mutex
		errs     []error
	)
	for _, daemon := range daemons {
		changing.Go(func() {
			err := daemon.Change(topology, o)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	changing.Wait()
	return errors.Join(errs...)
}
