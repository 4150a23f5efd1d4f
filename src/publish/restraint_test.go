// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/beep-lb/beep/src/model"
)

func TestNothingIsWrittenOnAVersionThatIsKnownToBeOld(t *testing.T) {
	r := newRestraint(time.Now)
	service := &model.Service{UID: "u", ResourceVersion: "1"}
	ours := []netip.Addr{nodeAddr(1)}
	if ok, _ := r.may(service, ours); !ok {
		t.Error("the first write is refused")
	}
	r.wrote(service, ours)
	if ok, at := r.may(service, nil); ok || !at.IsZero() {
		t.Errorf("what was written is written again before the watch brought it: %v, %v", ok, at)
	}
	service = &model.Service{UID: "u", ResourceVersion: "2"}
	if ok, _ := r.may(service, nil); !ok {
		t.Error("the next version is refused")
	}
	r.old(service)
	if ok, _ := r.may(service, nil); ok {
		t.Error("a version that met a 409 is written again")
	}
	r.keep(nil)
	if ok, _ := r.may(service, nil); !ok {
		t.Error("a Service that was gone is remembered")
	}
}

func TestAWriterWhoUndoesOursIsMetEverLessOften(t *testing.T) {
	now := time.Unix(1e9, 0)
	start := now
	r := newRestraint(func() time.Time { return now })
	ours := []netip.Addr{nodeAddr(1)}
	var writes []time.Duration
	contested := 0
	for version := range 3600 * 4 { // somebody undoes it four times a second for an hour
		service := &model.Service{UID: "u", ResourceVersion: strconv.Itoa(version)}
		if ok, _ := r.may(service, ours); ok {
			writes = append(writes, now.Sub(start))
			if r.wrote(service, ours) {
				contested++
			}
		}
		now = now.Add(250 * time.Millisecond)
	}
	if n := len(writes); n < 12 || n > 25 {
		t.Errorf("%d writes in an hour", n)
	}
	if last := writes[len(writes)-1] - writes[len(writes)-2]; last != longestRest {
		t.Errorf("the last pause is %v", last)
	}
	if contested != 1 {
		t.Errorf("told %d times", contested)
	}
	// What is desired changed: that is no fight.
	if ok, _ := r.may(&model.Service{UID: "u", ResourceVersion: "x"}, nil); !ok {
		t.Error("another list is held back")
	}
}

func TestAFlipOfTheTypeIsNoFight(t *testing.T) {
	now := time.Unix(1e9, 0)
	r := newRestraint(func() time.Time { return now })
	ours := []netip.Addr{nodeAddr(1)}
	r.wrote(&model.Service{UID: "u", ResourceVersion: "1"}, ours)
	if ok, _ := r.may(&model.Service{UID: "u", ResourceVersion: "2"}, ours); !ok {
		t.Error("the second write waits")
	}
}
