// SPDX-License-Identifier: Apache-2.0

package config

import "path/filepath"

// Explain holds the flags of `beep explain`. In the controller's container their variables are those of the
// controller, so that none need be given.
type Explain struct {
	Name          string `arg:"" help:"A Service (NAMESPACE/NAME, or NAME where only one has it), or a Node."`
	ExplainSocket string `name:"explain-socket" env:"BEEP_EXPLAIN_SOCKET" placeholder:"FILE" help:"Unix socket of the controller; default: the ready file's name and .sock."`
	ReadyFile     string `name:"ready-file" env:"BEEP_READY_FILE" default:"/tmp/beep-ready" placeholder:"FILE" help:"The controller's --ready-file."`
	Output        string `name:"output" short:"o" default:"text" placeholder:"FORMAT" help:"text for people, json for programs."`
}

// JSON says that the output is for programs.
func (e *Explain) JSON() bool { return e.Output == "json" }

// Socket is where to ask.
func (e *Explain) Socket() string { return socketPath(e.ExplainSocket, e.ReadyFile) }

// Validate reports every problem of the flags at once, in the form of Datapath.Validate.
func (e *Explain) Validate() error {
	var p Problems
	if !filepath.IsAbs(e.Socket()) {
		p.add("explain-socket", "BEEP_EXPLAIN_SOCKET", e.Socket(), "want an absolute path")
	}
	p.output(e.Output)
	return p.orNil()
}
