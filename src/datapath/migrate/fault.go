// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The environment variables by which a rig has an upgrade fail. They are for rigs only.
const (
	// EnvKillAt names a Step: the process kills itself (SIGKILL) when it has got there.
	EnvKillAt = "BEEP_FAULT_KILL_AT"
	// EnvFailRestoreWrite set to 1 makes the first write of a carried row fail with ENOMEM.
	EnvFailRestoreWrite = "BEEP_FAULT_FAIL_RESTORE_WRITE"
)

// Step is a point of a start at which the process may die.
type Step string

// The steps of a start in their order. Those from Bridged to Drained are of starts that move the flows to other
// tables; a step of each uplink is reached once an uplink.
const (
	MapsMade        Step = "maps-made"        // the new maps are there, no rows, no pins
	RowsCarried     Step = "rows-carried"     // and hold the old maps' rows
	ProgramsLoaded  Step = "programs-loaded"  // the verifier has passed the programs
	MapsFilled      Step = "maps-filled"      // the new maps are as fixtures want them
	PartPinned      Step = "part-pinned"      // one new map is pinned aside
	PinnedAside     Step = "pinned-aside"     // all are, and a later start will use them
	CaughtUp        Step = "caught-up"        // with what was written since RowsCarried
	Bridged         Step = "bridged"          // an uplink's answers meet the new and the old programs
	IngressSwitched Step = "ingress-switched" // an uplink's packets meet the new programs
	Settled         Step = "settled"          // the last packet that an old ingress program saw is carried over
	EgressSwitched  Step = "egress-switched"  // an uplink's answers meet the new programs only
	Drained         Step = "drained"          // the last packet that an old program saw is carried over
	PartPublished   Step = "part-published"   // one new map has its name
	Published       Step = "published"        // all have
	CleanedUp       Step = "cleaned-up"       // nothing is left of the old
)

// Steps are all steps, in order.
func Steps() []Step {
	return []Step{
		MapsMade, RowsCarried, ProgramsLoaded, MapsFilled, PartPinned, PinnedAside, CaughtUp, Bridged, IngressSwitched, Settled,
		EgressSwitched, Drained, PartPublished, Published, CleanedUp,
	}
}

// Faults are what a rig asks to go wrong. The zero value asks for nothing, and so does nil.
type Faults struct {
	killAt    Step
	failWrite bool
}

// FaultsOf reads the environment by the given function (os.Getenv), and warns of everything that it finds.
func FaultsOf(getenv func(string) string, log *slog.Logger) (*Faults, error) {
	f := &Faults{killAt: Step(getenv(EnvKillAt)), failWrite: getenv(EnvFailRestoreWrite) == "1"}
	if f.killAt != "" {
		if !slices.Contains(Steps(), f.killAt) {
			return nil, fmt.Errorf("%s=%s: no such step: choose one of %s", EnvKillAt, f.killAt, strings.Trim(fmt.Sprint(Steps()), "[]"))
		}
		log.Warn("a fault is asked for, which only rigs should do", "variable", EnvKillAt, "step", string(f.killAt))
	}
	if f.failWrite {
		log.Warn("a fault is asked for, which only rigs should do", "variable", EnvFailRestoreWrite)
	}
	return f, nil
}

// Reach is called when a step is done. It does not return where a rig wants the process to die.
func (f *Faults) Reach(step Step) {
	if f != nil && f.killAt == step {
		unix.Kill(unix.Getpid(), unix.SIGKILL) //nolint:errcheck // a process may kill itself
		select {}                              // the signal may hit another thread first
	}
}

// restore is asked before a carried row is written.
func (f *Faults) restore() error {
	if f != nil && f.failWrite {
		return unix.ENOMEM
	}
	return nil
}
