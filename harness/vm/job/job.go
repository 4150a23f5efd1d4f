// SPDX-License-Identifier: Apache-2.0

// Package job is what the host asks of a machine that runs test binaries, and what it hears back. Invariant: both
// sides are built from this package at the same time, so neither format is ever read by another version.
package job

import (
	"encoding/json"
	"fmt"
	"io"
)

// Path is where a Job is in the machine, as JSON.
const Path = "/job.json"

// Artifacts is the directory in the machine whose content is sent to the host, if there is any, after the last run.
const Artifacts = "/beep/build/artifacts"

// The machine's ports. EventPort carries Events, a line of JSON each; ArtifactsPort an uncompressed tar archive.
const (
	EventPort     = "events"
	ArtifactsPort = "artifacts"
)

// Job is what a machine does before it powers off.
type Job struct {
	Modules []string // loaded first, in this order; one that is built in is as good
	Runs    []Run    // one after another, also after one has failed
}

// Run is one program.
type Run struct {
	Name string   // of its events; no other run has it
	Dir  string   // working directory
	Args []string // the program's path, and its arguments
	Env  []string // NAME=value, beside PATH and what the job sets for all
}

// Event is one thing that a machine has to say: output of a run, or its end.
type Event struct {
	Run    string
	Output string `json:",omitempty"` // a piece of standard output and error, mixed
	End    *End   `json:",omitempty"`
}

// End is how a run ended.
type End struct {
	Code  int    // exit status; 128+n after signal n, as a shell has it; -1 if the program did not start
	Error string `json:",omitempty"` // why it did not start
}

// Read calls each with every event until the machine has ended. An event that is cut short by that end is an error.
func Read(r io.Reader, each func(Event)) error {
	decoder := json.NewDecoder(r)
	for {
		var event Event
		if err := decoder.Decode(&event); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an event of the machine: %w", err)
		}
		each(event)
	}
}
