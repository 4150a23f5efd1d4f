// SPDX-License-Identifier: Apache-2.0

// Package sweep removes the rows of flows that are over: half-open ones that nobody answered, closed ones, those that
// have been idle for long, and those whose endpoint is gone. Invariant: a row goes together with its mirror, and no row
// goes as idle that a packet has touched since it was found so.
package sweep

import (
	"errors"
	"time"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/model"
)

// Policy is after how long without a packet a row may go. Rows carry whole seconds, and a sweep comes at most
// half of the smallest of these later (see Interval), so a row lives between once and twice its time, if that is at
// least two seconds.
type Policy struct {
	// UDP and TCP are for flows that have proved themselves.
	UDP, TCP time.Duration
	// HalfOpen is for flows that have not.
	HalfOpen time.Duration
	// Closed is for TCP flows that ended, whose late packets are still forwarded.
	Closed time.Duration
}

const (
	// halfOpen keeps a SYN's row over the client's first five tries (RFC 6298: 1, 3, 7, 15 seconds) and, with a
	// sweep every 15 seconds, no longer than a minute.
	halfOpen = 30 * time.Second
	// closed is Linux' TIME_WAIT (TCP_TIMEWAIT_LEN), in which the last FIN may still come again.
	closed = 60 * time.Second
)

// PolicyOf takes the idle times from flags that passed Validate.
func PolicyOf(flags *config.Datapath) Policy {
	return Policy{UDP: flags.UDPIdle(), TCP: flags.TCPIdle(), HalfOpen: halfOpen, Closed: closed}
}

// Cause is why a row was removed.
type Cause string

// The causes, as metrics label them.
const (
	HalfOpen Cause = "half-open"
	Closed   Cause = "closed"
	IdleUDP  Cause = "idle-udp"
	IdleTCP  Cause = "idle-tcp"
)

// expired says whether a row may go at a time in seconds of the clock that the programs use, and why. A half-open
// row is also bounded by the time of its protocol, if an operator made that shorter.
func expired(flow maps.Flow, now uint32, policy Policy) (Cause, bool) {
	cause, limit := IdleTCP, policy.TCP
	if flow.Proto == model.UDP {
		cause, limit = IdleUDP, policy.UDP
	}
	if flow.Table == maps.FlowPending && policy.HalfOpen < limit {
		cause, limit = HalfOpen, policy.HalfOpen
	}
	if flow.Flags&maps.Closed != 0 && policy.Closed < limit {
		cause, limit = Closed, policy.Closed
	}
	// The clock wraps after 136 years of uptime; a row that a packet touched after now was read is ahead of it.
	idle := time.Duration(int32(now-flow.LastSeen)) * time.Second
	// Both times are cut to whole seconds: only a difference above the limit is at least the limit.
	return cause, idle > limit
}

// Result is what one sweep did.
type Result struct {
	// Scanned is the number of rows that were looked at, mirrors included.
	Scanned int
	// Removed counts rows by cause, mirrors included.
	Removed map[Cause]int
	// Errors is the number of rows that could not be read or removed.
	Errors int
}

// flows is the part of maps.Kernel that a sweep needs.
type flows interface {
	Flows(visit func(maps.Flow) bool) error
	LookupFlow(table string, key maps.FlowKey) (maps.Flow, error)
	DeleteFlow(table string, key maps.FlowKey) error
}

var _ flows = (*maps.Kernel)(nil)

// Idle goes once over all tables and removes what has expired at now, in seconds as Now gives them. Each row is
// read again just before it goes, and so is its mirror: if either has been used, both stay. The error is the first
// one met; the rows after it were swept all the same.
func Idle(m *maps.Kernel, now uint32, policy Policy) (Result, error) {
	return idle(m, now, policy)
}

func idle(m flows, now uint32, policy Policy) (Result, error) {
	result := Result{Removed: map[Cause]int{}}
	var first error
	err := m.Flows(func(found maps.Flow) bool {
		result.Scanned++
		if _, over := expired(found, now, policy); !over {
			return true
		}
		if err := removePair(m, found, now, policy, result.Removed); err != nil {
			result.Errors++
			if first == nil {
				first = err
			}
		}
		return true
	})
	return result, errors.Join(err, first)
}

// removePair removes a row that was found expired, and its mirror, unless one of them is in use by now.
func removePair(m flows, found maps.Flow, now uint32, policy Policy, removed map[Cause]int) error {
	row, present, err := lookup(m, found.Table, found.FlowKey)
	if err != nil || !present {
		return err // it went as another's mirror, or by itself
	}
	cause, over := expired(row, now, policy)
	if !over {
		return nil
	}
	mirror, paired, err := mirrorOf(m, row)
	if err != nil {
		return err
	}
	if paired {
		if _, over := expired(mirror, now, policy); !over {
			return nil
		}
	}
	if err := remove(m, row, cause, removed); err != nil || !paired {
		return err
	}
	return remove(m, mirror, cause, removed)
}

// mirrorOf reads the other row of a pair, if it is there. Where a pair was torn, its mirror's key may by now be a
// row of another flow's: that is nobody's mirror here.
func mirrorOf(m flows, row maps.Flow) (maps.Flow, bool, error) {
	key, paired := row.Mirror()
	if !paired {
		return maps.Flow{}, false, nil
	}
	mirror, present, err := lookup(m, row.Table, key)
	if err != nil || !present {
		return maps.Flow{}, false, err
	}
	back, _ := mirror.Mirror()
	return mirror, back == row.FlowKey, nil
}

// lookup reads a row that may be absent.
func lookup(m flows, table string, key maps.FlowKey) (maps.Flow, bool, error) {
	row, err := m.LookupFlow(table, key)
	if errors.Is(err, maps.ErrNoRow) {
		return maps.Flow{}, false, nil
	}
	return row, err == nil, err
}

// remove removes a row and counts it, if it is still there.
func remove(m flows, row maps.Flow, cause Cause, removed map[Cause]int) error {
	err := m.DeleteFlow(row.Table, row.FlowKey)
	if errors.Is(err, maps.ErrNoRow) {
		return nil
	}
	if err == nil {
		removed[cause]++
	}
	return err
}
