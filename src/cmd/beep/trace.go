// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/datapath/trace"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/netdev"
)

type traceCommand struct {
	config.Inspect
	Client   pattern       `name:"client" placeholder:"ADDRESS" help:"Only packets of this client, either way: ADDRESS or ADDRESS/BITS."`
	Front    pattern       `name:"front" placeholder:"SOCKET" help:"Only packets of this front: ADDRESS, ADDRESS:PORT or PROTOCOL/ADDRESS:PORT."`
	Proto    string        `name:"proto" placeholder:"PROTOCOL" help:"Only tcp or only udp."`
	Passes   bool          `name:"passes" help:"Also packets that beep leaves to the host."`
	Count    int           `name:"count" placeholder:"N" help:"End after so many packets."`
	Duration time.Duration `name:"duration" placeholder:"TIME" help:"End after this time, as 10s or 2m."`
	Rate     uint32        `name:"rate" default:"1000" placeholder:"N" help:"Packets a second at most; what is more is counted as lost."`
}

// traceOutput is a line of `beep trace -o json`.
type traceOutput struct {
	Time time.Time `json:"time"`
	// Device is its name; "" if it is gone, or in another network namespace.
	Device  string `json:"device"`
	Ifindex int    `json:"ifindex"`
	// Out is the device that it was redirected to; "" if it was not.
	Out       string `json:"out"`
	Direction string `json:"direction"`
	// From is client, peer, endpoint or copy; To is endpoint, tunnel, client, host, sender, copy or drop.
	From string `json:"from"`
	To   string `json:"to"`
	// Reason is the word of `beep drops`, Meaning the sentence; "" for packets that were not dropped.
	Reason  string `json:"reason"`
	Meaning string `json:"meaning"`
	// NewFlow and Remapped are said of the packet that began a flow on this node.
	NewFlow  bool   `json:"newFlow"`
	Remapped bool   `json:"remapped"`
	Protocol string `json:"protocol"`
	// Flags are TCP's: S, A, F, R, P, U, E, C.
	Flags string `json:"flags"`
	// Note tells of what is not plain TCP or UDP: an ICMP error, a fragment, an error in answer.
	Note string `json:"note"`
	// Client, Front, Endpoint and Peer are "" if they are not known.
	Client   netip.AddrPort `json:"client"`
	Front    netip.AddrPort `json:"front"`
	Endpoint netip.AddrPort `json:"endpoint"`
	Peer     netip.Addr     `json:"peer"`
	// Bytes are the packet's as it came, BytesAfter as it went (0: not seen), link layer included. GSO is the payload of a segment
	// where it stands for many.
	Bytes      uint32 `json:"bytes"`
	BytesAfter uint32 `json:"bytesAfter"`
	GSO        uint32 `json:"gso"`
}

func (t *traceCommand) Run(c console) error {
	filter, err := t.filter()
	if err != nil {
		return err
	}
	return read(t.PinDir, func(dir *pinfs.Dir, kernel *maps.Kernel) error {
		ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
		defer stop()
		looking, err := trace.Open(dir, devices, filter)
		if err != nil {
			return err
		}
		defer looking.Close()
		if t.Duration > 0 {
			timed, cancel := context.WithTimeout(ctx, t.Duration)
			defer cancel()
			ctx = timed
		}
		fmt.Fprintln(c.err, "beep: tracing; end it with Ctrl-C")
		return t.print(ctx, c, looking, filter, kernel)
	})
}

// print writes a line a packet, and in the end what is missing.
func (t *traceCommand) print(ctx context.Context, c console, looking *trace.Trace, filter trace.Filter, kernel *maps.Kernel) error {
	links, err := devices()
	if err != nil {
		return err
	}
	told := 0
	var failed error
	err = looking.Run(ctx, func(event trace.Event) bool {
		if event.Complete(kernel); !filter.Wanted(event) {
			return true
		}
		told++
		failed = t.printOne(c, traceOutputOf(event, links))
		return failed == nil && (t.Count == 0 || told < t.Count)
	})
	lost, lostErr := looking.Lost()
	if lost > 0 {
		fmt.Fprintf(c.err, "beep: %d packets more were not shown: narrow --client and --front, or raise --rate\n", lost)
	}
	return errors.Join(err, failed, lostErr)
}

func (t *traceCommand) printOne(c console, out traceOutput) error {
	if t.JSON() {
		return c.line(out)
	}
	_, err := fmt.Fprintln(c.out, out.line())
	return err
}

// filter is what the flags ask for; every problem is reported at once.
func (t *traceCommand) filter() (trace.Filter, error) {
	filter := trace.Filter{Client: t.Client.prefix, Port: t.Front.port, Proto: t.Front.proto, Passes: t.Passes, Rate: t.Rate}
	var problems []error
	if t.Client.port != 0 || t.Client.proto != 0 {
		problems = append(problems, errors.New("--client: want ADDRESS or ADDRESS/BITS, without port and protocol"))
	}
	if front := t.Front.prefix; front.IsValid() && !front.IsSingleIP() {
		problems = append(problems, fmt.Errorf("--front: %s is more than one address", front))
	}
	if t.Proto != "" {
		proto, err := model.ParseProto(t.Proto)
		if err == nil && filter.Proto != 0 && filter.Proto != proto {
			err = fmt.Errorf("%s, but --front is %s", t.Proto, filter.Proto)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("--proto: %w", err))
		}
		filter.Proto = proto
	}
	if t.Count < 0 || t.Duration < 0 || t.Rate == 0 {
		problems = append(problems, errors.New("--count and --duration are not negative, and --rate is at least 1"))
	}
	if t.Front.prefix.IsValid() {
		filter.Front = t.Front.prefix.Addr()
	}
	return filter, errors.Join(problems...)
}

// traceOutputOf tells an event; links are the devices that there were when the trace began.
func traceOutputOf(e trace.Event, links []netdev.Link) traceOutput {
	out := traceOutput{
		Time: e.At, Device: nameOf(links, e.Ifindex), Out: nameOf(links, e.Out), Ifindex: e.Ifindex,
		Direction: e.Direction.String(), From: string(e.From), To: string(e.To),
		NewFlow: e.NewFlow, Remapped: e.Remapped, Protocol: model.Proto(e.Protocol).String(), Note: note(e),
		Client: e.Client, Front: e.Front, Endpoint: e.Endpoint, Peer: e.Peer,
		Bytes: e.Length, BytesAfter: e.LengthAfter, GSO: e.GSOSize,
	}
	if e.Reason != 0 {
		out.Reason, out.Meaning = e.Reason.String(), e.Reason.Words()
	}
	if model.Proto(e.Protocol) == model.TCP && e.ICMP == nil {
		out.Flags = tcpFlags(e.TCPFlags)
	}
	return out
}

// tcpFlags are the flags of the TCP header by their letters, from the lowest bit (RFC 9293, section 3.1).
func tcpFlags(flags uint8) string {
	var set strings.Builder
	for bit, letter := range "FSRPAUEC" {
		if flags&(1<<bit) != 0 {
			set.WriteRune(letter)
		}
	}
	return set.String()
}

// note is what there is to say of a packet that is no plain one.
func note(e trace.Event) string {
	var notes []string
	if e.Later {
		notes = append(notes, "later fragment")
	}
	if e.ICMP != nil {
		notes = append(notes, fmt.Sprintf("ICMP error, type %d code %d, about this flow", e.ICMP.Type, e.ICMP.Code))
	}
	if e.To == trace.Sender {
		notes = append(notes, "answered with an ICMP error")
	}
	if e.To == trace.Copy {
		notes = append(notes, "cut up: a copy for each part follows")
	}
	return strings.Join(notes, ", ")
}

// line is a packet for people: when, where, which way, what became of it, and whose it is.
func (o *traceOutput) line() string {
	device := o.Device
	if device == "" {
		device = strconv.Itoa(o.Ifindex)
	}
	words := []string{o.Time.Format("15:04:05.000000"), device, o.Direction, o.From + ">" + o.To}
	if o.Reason != "" {
		words = append(words, o.Reason)
	}
	words = append(words, o.Protocol)
	if o.Flags != "" {
		words = append(words, o.Flags)
	}
	words = append(words, "client", known(o.Client), "front", known(o.Front), "endpoint", known(o.Endpoint))
	if o.Peer.IsValid() {
		words = append(words, "peer", o.Peer.String())
	}
	words = append(words, number(uint64(o.Bytes)))
	if o.BytesAfter != 0 && o.Bytes != o.BytesAfter {
		words = append(words, "to", number(uint64(o.BytesAfter)))
	}
	words = append(words, "bytes")
	if o.GSO != 0 {
		words = append(words, "in segments of", number(uint64(o.GSO)))
	}
	if o.Out != "" && o.Out != device {
		words = append(words, "out", o.Out)
	}
	if o.NewFlow {
		words = append(words, "new")
	}
	if o.Remapped {
		words = append(words, "remapped")
	}
	text := strings.Join(words, " ")
	if o.Note != "" {
		text += " (" + o.Note + ")"
	}
	return text
}

// known is a socket, or "-".
func known(socket netip.AddrPort) string {
	if !socket.IsValid() {
		return "-"
	}
	return socket.String()
}
