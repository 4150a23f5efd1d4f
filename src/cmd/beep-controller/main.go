// SPDX-License-Identifier: Apache-2.0

// Command beep-controller keeps one node's maps as the Services, EndpointSlices and Nodes of a cluster ask. Invariant:
// it only wires other packages together; nothing is written before all three lists are known, and when it ends or
// cannot reach the API server, the node goes on forwarding as it was.
//
//	beep-controller --pin-dir DIR --node-name NAME [--kubeconfig FILE]   of an API server
//	beep-controller --pin-dir DIR --node-name NAME --manifests DIR       of YAML files
//
// `beep run` makes the maps; without them the controller waits. It ends by SIGTERM with exit code 0, after an error
// with 1, and with 2 for a command line of another language. An error is one line for each thing that is wrong, on
// standard error, and names what to do.
package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/beep-lb/beep/src/config"
)

// version is set by the Makefile (-ldflags -X).
var version = "unknown"

// The exit codes.
const (
	exitError = 1
	exitUsage = 2
)

const usage = `Usage: beep-controller --pin-dir DIR --node-name NAME [flags]

beep-controller keeps this node's fronts as the Services of the cluster ask.

Flags:
%s`

func main() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs one command line and returns its exit code.
func execute(args []string, out, errout io.Writer) int {
	var cli struct {
		config.Controller
		Version bool `name:"version" help:"Print the version and exit."`
	}
	flags := config.NewFlags(&cli)
	err := flags.Parse(args, os.LookupEnv)
	switch {
	case errors.Is(err, config.ErrHelp):
		fmt.Fprintf(out, usage, flags.Usage())
		return 0
	case err != nil:
		complain(errout, fmt.Errorf("%w: see `beep-controller --help`", err))
		return exitUsage
	case cli.Version:
		fmt.Fprintln(out, version)
		return 0
	}
	if err := cli.Validate(); err != nil {
		complain(errout, err)
		return exitError
	}
	if err := run(&cli.Controller, newLogger(&cli.Controller, errout)); err != nil {
		complain(errout, err)
		return exitError
	}
	return 0
}

// complain prints an error, each of its lines on a line of its own.
func complain(to io.Writer, err error) {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(to, "beep-controller: %s\n", strings.TrimRight(line, "\n"))
	}
}

func newLogger(flags *config.Controller, to io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: flags.Level()}
	if flags.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}
