// SPDX-License-Identifier: Apache-2.0

package scene_test

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/scene"
	"github.com/beep-lb/beep/harness/topo"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

func TestCountersOfEveryLayer(t *testing.T) {
	s := scene.New(t, topo.OneLAN(1, topo.Options{}), false)
	counters := s.Counters("client")
	for _, name := range []string{"Ip.InHdrErrors", "Tcp.InCsumErrors", "Tcp.RetransSegs", "Udp.InCsumErrors", "Udp6.InCsumErrors", "Ip6.InHdrErrors",
		"TcpExt.TCPDSACKRecv"} {
		if _, known := counters[name]; !known {
			t.Errorf("no counter %s", name)
		}
	}
	if errs := s.ChecksumErrors(); len(errs) != 0 {
		t.Errorf("checksum errors before any traffic: %v", errs)
	}
}

func TestBrakeHoldsUntilReleased(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	brake := scene.NewBrake(near, 1) // a byte a second
	defer brake.Close()
	written := make(chan error, 1)
	go func() {
		_, err := brake.Write(make([]byte, 3600))
		written <- err
	}()
	if _, err := io.ReadFull(far, make([]byte, 3600)); err != nil {
		t.Fatal(err)
	}
	select {
	case <-written:
		t.Fatal("an hour's worth passed at once")
	case <-time.After(20 * time.Millisecond):
	}
	brake.Release()
	if err := <-written; err != nil || brake.Moved() != 3600 {
		t.Errorf("moved %d, %v", brake.Moved(), err)
	}
}
