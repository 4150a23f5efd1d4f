// SPDX-License-Identifier: Apache-2.0

package lima

import (
	"context"
	"fmt"
	"io"
	"regexp"

	"github.com/beep-lb/beep/harness/checkout"
)

// rigName is what may stand in a command as it is.
var rigName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// inMachine is where a machine has the repository.
const inMachine = "/root/beep"

// Rig runs `make rig-NAME` in the machine beep-rigs, on what this checkout has, and sends the output to a writer as it
// comes. The machine stays, so that the next one starts with its caches.
func Rig(ctx context.Context, name string, out io.Writer) error {
	if !rigName.MatchString(name) {
		return fmt.Errorf("%q is no name of a rig: give that of a folder below rigs/", name)
	}
	if err := Check(); err != nil {
		return err
	}
	return rig(ctx, name, out)
}

func rig(ctx context.Context, name string, out io.Writer) error {
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	machine, err := Start(ctx, "rigs", "rig")
	if err != nil {
		return err
	}
	if err := machine.CopyTree(ctx, root, inMachine, "./.git", "./bin", "./build"); err != nil {
		return err
	}
	return machine.RunTo(ctx, "cd "+inMachine+" && CI=true GOTOOLCHAIN=auto make VERSION=lima deps rig-"+name, out)
}
