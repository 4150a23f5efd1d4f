// SPDX-License-Identifier: Apache-2.0

package churn_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/traffic"
)

// serveNames answers every datagram with its first eight bytes and the name.
func serveNames(ns *netns.NS, name string, at netip.AddrPort) (stop func() error, err error) {
	conn, err := ns.ListenPacket(at)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		buffer := make([]byte, 64)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(buffer)
			if err != nil {
				return
			}
			if n >= 8 {
				conn.WriteToUDPAddrPort(append(buffer[:8:8], name...), from) //nolint:errcheck // a lost answer is the asker's to count
			}
		}
	}()
	stop = sync.OnceValue(func() error {
		err := conn.Close()
		<-done
		return err
	})
	ns.OnClose(stop)
	return stop, nil
}

// answer is which pod answered one question.
type answer struct {
	asked, came time.Time
	pod         string
}

// asker asks without end, and keeps the answers.
type asker struct {
	what   string
	cancel context.CancelFunc
	done   chan struct{}

	mu       sync.Mutex
	answers  []answer
	failures int
	open     map[time.Time]bool // datagrams without an answer so far, by the time at which they were sent
}

func newAsker(what string, ask func(context.Context, *asker)) *asker {
	ctx, cancel := context.WithCancel(context.Background())
	a := &asker{what: what, cancel: cancel, done: make(chan struct{}), open: map[time.Time]bool{}}
	go func() { defer close(a.done); ask(ctx, a) }()
	DeferCleanup(func() { cancel(); <-a.done })
	return a
}

// took notes an answer to a question of that time, or that there was none.
func (a *asker) took(asked time.Time, pod string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.failures++
		return
	}
	delete(a.open, asked)
	a.answers = append(a.answers, answer{asked, time.Now(), pod})
}

// asks notes a datagram.
func (a *asker) asks(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open[at] = true
}

// stop ends the asking and returns all answers.
func (a *asker) stop() []answer {
	a.cancel()
	<-a.done
	return a.answers
}

// since are the pods that answered questions which were asked after that time, each once.
func (a *asker) since(asked time.Time) func() []string {
	return func() []string {
		a.mu.Lock()
		defer a.mu.Unlock()
		var pods []string
		for _, answer := range a.answers {
			if answer.asked.After(asked) && !slices.Contains(pods, answer.pod) {
				pods = append(pods, answer.pod)
			}
		}
		return pods
	}
}

// unanswered are the datagrams without an answer, of those that were sent long enough ago: how long before or after a
// moment they were sent.
func (a *asker) unanswered(moment time.Time) []time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	var sent []time.Duration
	for asked := range a.open {
		if time.Since(asked) > soon {
			sent = append(sent, asked.Sub(moment).Round(time.Millisecond))
		}
	}
	slices.Sort(sent)
	return sent
}

// soon is how long a question waits for its answer, in all askers.
const soon = 100 * time.Millisecond

// datagrams asks by UDP from one source port, every two milliseconds.
func datagrams(ns *netns.NS, from, at netip.AddrPort) *asker {
	GinkgoHelper()
	conn, err := ns.DialFrom(context.Background(), "udp", from, at)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	return newAsker("datagrams to "+at.String(), func(ctx context.Context, a *asker) {
		var mu sync.Mutex
		var asked []time.Time
		go receive(ctx, conn, func(sequence uint64, pod string) {
			mu.Lock()
			defer mu.Unlock()
			a.took(asked[sequence], pod, nil)
		})
		ticks := time.NewTicker(2 * time.Millisecond)
		defer ticks.Stop()
		for ctx.Err() == nil {
			<-ticks.C
			mu.Lock()
			question := binary.BigEndian.AppendUint64(nil, uint64(len(asked)))
			asked = append(asked, time.Now())
			a.asks(asked[len(asked)-1])
			mu.Unlock()
			conn.Write(question) //nolint:errcheck // an ICMP error, as from a pod that closed its socket: the answers count
		}
	})
}

func receive(ctx context.Context, conn net.Conn, took func(sequence uint64, pod string)) {
	buffer := make([]byte, 64)
	for ctx.Err() == nil {
		if conn.SetReadDeadline(time.Now().Add(soon)) != nil {
			return
		}
		if n, err := conn.Read(buffer); err == nil && n > 8 {
			took(binary.BigEndian.Uint64(buffer), string(bytes.Clone(buffer[8:n])))
		}
	}
}

// requests asks by HTTP, on one connection as long as it lasts, or on a new one each time.
func requests(ns *netns.NS, at netip.AddrPort, one bool) *asker {
	what := "requests to " + at.String()
	if one {
		what += " on one connection"
	}
	return newAsker(what, func(ctx context.Context, a *asker) {
		client := traffic.HTTPClient(ns)
		for ctx.Err() == nil {
			asked := time.Now()
			within, cancel := context.WithTimeout(ctx, soon)
			got, err := traffic.Ask(within, client, at)
			cancel()
			if ctx.Err() == nil {
				a.took(asked, got.Server, err)
			}
			if err != nil || !one {
				client.CloseIdleConnections()
			}
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				continue
			}
			select { // a refusal comes at once
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
}

// askOn asks for the server's name on a connection, which stays open.
func askOn(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: beep\r\n\r\n"); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	var answer traffic.Answer
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Server, err
}
