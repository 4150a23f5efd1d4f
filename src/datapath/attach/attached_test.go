// SPDX-License-Identifier: Apache-2.0

package attach

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// inContainer runs f with the capabilities that deploy/base gives the datapath, those for files of others left alone.
func inContainer(t *testing.T, f func()) {
	t.Helper()
	// Capabilities are a thread's. The thread ends with the goroutine: it is never unlocked.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		for _, capability := range []uint{unix.CAP_BPF, unix.CAP_NET_ADMIN, unix.CAP_PERFMON} {
			data[capability/32].Effective |= 1 << (capability % 32)
		}
		data[0].Permitted, data[1].Permitted = data[0].Effective, data[1].Effective
		if err := unix.Capset(&header, &data[0]); err != nil {
			t.Errorf("give up capabilities: %v", err)
			return
		}
		f()
	}()
	<-done
}

func TestTheDatapathsCapabilitiesAreEnoughToLook(t *testing.T) {
	n := newNode(t)
	uplink := n.device("up0")
	must(t, n.attach(uplink))
	inContainer(t, func() {
		attached, err := Attached(n.dir)
		if err != nil || len(attached) != 2 {
			t.Errorf("%+v, %v", attached, err)
		}
	})
}

func TestSinceIsOfTheLastProgram(t *testing.T) {
	n := newNode(t)
	uplink := n.device("up0")
	must(t, n.attach(uplink))
	before, err := Attached(n.dir)
	must(t, err)
	past := time.Now().Add(-time.Hour)
	for _, one := range before {
		must(t, os.Chtimes(n.dir.LinkPath(one.Link), past, past))
	}
	must(t, n.attach(uplink))
	after, err := Attached(n.dir)
	must(t, err)
	for i, one := range after {
		if one.Program == before[i].Program || time.Since(one.Since) > time.Minute {
			t.Errorf("%s: program %d since %s, before %d", one.Direction, one.Program, one.Since, before[i].Program)
		}
	}
}
