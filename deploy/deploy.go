// SPDX-License-Identifier: Apache-2.0

// Package deploy is the manifests of an installation, for tests that hold beep to them. Invariant: what a test reads
// here is what an operator applies.
package deploy

import "embed"

// Base is the folder base/ as `kubectl apply -k` finds it.
//
//go:embed base/*.yaml
var Base embed.FS
