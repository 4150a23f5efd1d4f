// SPDX-License-Identifier: Apache-2.0

// Command beep is the node's daemon and the operator's tool. Invariant: it only wires other packages together and
// prints what they say; every command that reads works from the pins alone, with or without a daemon, but explain.
//
//	beep run      attach to the uplinks, keep them attached, sweep idle flows, serve metrics, until SIGTERM
//	beep load     the same once: load, fill, attach, exit; the programs go on without a process
//	beep status   is this node forwarding as it should? The exit code says so too
//	beep fronts   the fronts and their endpoints
//	beep flows    the flows, by client, front or endpoint
//	beep drops    what was dropped and why; --watch for rates
//	beep trace    what becomes of each packet, as it happens; by client and front
//	beep nodes    this node's tunnel addresses and the peers whose tunnels it accepts
//	beep targets  the pod sockets that tunnels may deliver to
//	beep explain  why a Service, its addresses and endpoints, or a Node are as they are; asks the controller
//	beep node-prep   check what beep needs of the node, and loosen strict reverse-path filtering of the uplinks
//	beep uninstall   take programs, maps and settings off the node
//	beep version  what this build is
//
// Exit codes: 0, 1 for an error (and for a status that is not healthy), 2 for a wrong command line. An error is one
// line for each thing that is wrong, on standard error, and names what to do. SIGTERM and kill -9 leave the
// programs forwarding.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
)

// version is set by the Makefile (-ldflags -X).
var version = "unknown"

// The exit codes.
const (
	exitError = 1
	exitUsage = 2
)

// errUnhealthy is a status that was printed already.
var errUnhealthy = errors.New("not healthy")

type commands struct {
	Run       runCommand       `cmd:"" help:"Attach to the uplinks, keep them attached, sweep idle flows, serve metrics, until SIGTERM."`
	Load      loadCommand      `cmd:"" help:"Load, fill and attach once; the programs go on without a process."`
	Status    statusCommand    `cmd:"" help:"Say whether this node forwards as it should; exit code 0 if so, 1 if not."`
	Fronts    frontsCommand    `cmd:"" help:"List the fronts and their endpoints."`
	Flows     flowsCommand     `cmd:"" help:"List the flows."`
	Drops     dropsCommand     `cmd:"" help:"List what was dropped, and why."`
	Trace     traceCommand     `cmd:"" help:"Tell what becomes of each packet, as it happens."`
	Nodes     nodesCommand     `cmd:"" help:"List this node's tunnel addresses and its peers."`
	Targets   targetsCommand   `cmd:"" help:"List the pod sockets of this node that tunnels may deliver to."`
	Explain   explainCommand   `cmd:"" help:"Say why a Service, its addresses and endpoints, or a Node are so (asks beep-controller)."`
	NodePrep  nodePrepCommand  `cmd:"" help:"Check what beep needs of the node, and loosen strict reverse-path filtering of the uplinks."`
	Uninstall uninstallCommand `cmd:"" help:"Take programs, maps and settings off the node; beep run must have ended."`
	Version   versionCommand   `cmd:"" help:"Print the version."`
}

func main() { os.Exit(execute(os.Args[1:], console{os.Stdout, os.Stderr})) }

// execute runs one command line and returns its exit code.
func execute(args []string, c console) int {
	var cli commands
	parser, err := kong.New(&cli, kong.Name("beep"), kong.Writers(c.out, c.err), kong.Bind(c),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}), kong.ValueFormatter(describe),
		kong.Description("beep balances connections to this node's own addresses over pods on this and other nodes."))
	if err != nil {
		panic(err) // the structs above are wrong
	}
	context, err := parser.Parse(args)
	if err != nil {
		return c.misused(err)
	}
	switch err := context.Run(); {
	case errors.Is(err, errUnhealthy):
		return exitError
	case err != nil:
		c.complain(err)
		return exitError
	}
	return 0
}

// describe is the help of a flag with its default, which the name of a placeholder hides.
func describe(flag *kong.Value) string {
	text := kong.DefaultHelpValueFormatter(flag)
	if flag.HasDefault && flag.Default != "" {
		text += " Default: " + flag.Default + "."
	}
	return text
}

// misused prints why a command line was refused. Values that cannot be are the operator's error; the language of
// the command line, and a --pin-dir that is missing, is usage.
func (c console) misused(err error) int {
	var problems config.Problems
	if !errors.As(err, &problems) {
		c.complain(fmt.Errorf("%w: see `beep --help`, or `beep COMMAND --help`", err))
		return exitUsage
	}
	c.complain(problems)
	var parse *kong.ParseError
	if !errors.As(err, &parse) {
		return exitError
	}
	if pins := parse.Context.Selected().Target.FieldByName("PinDir"); pins.IsValid() && pins.IsZero() {
		return exitUsage
	}
	return exitError
}

type versionCommand struct {
	Output string `name:"output" short:"o" default:"text" enum:"text,json" help:"text for people, json for programs."`
}

// versionOutput is `beep version -o json`.
type versionOutput struct {
	Version string `json:"version"`
	// ABI is the layout of the maps that this build reads and writes.
	ABI  int    `json:"abi"`
	Go   string `json:"go"`
	Arch string `json:"arch"`
}

func (v *versionCommand) Run(c console) error {
	out := versionOutput{version, maps.ABI, runtime.Version(), runtime.GOARCH}
	if v.Output == "json" {
		return c.json(out)
	}
	_, err := fmt.Fprintf(c.out, "beep %s, ABI %d, %s, %s\n", out.Version, out.ABI, out.Go, out.Arch)
	return err
}
