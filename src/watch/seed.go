// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// seedFile holds the hash seed of a Directory, as 32 hexadecimal digits. It is hidden, and so no manifest.
const seedFile = ".beep-seed"

// Seed returns the seed of the flow hash, which every node that reads the directory shares. Whoever comes first draws
// it and writes it beside the manifests, for nobody else to read: who knows it can compute where a flow goes.
func (d *Directory) Seed() (seed [16]byte, err error) {
	path := filepath.Join(d.path, seedFile)
	if text, err := os.ReadFile(path); !errors.Is(err, fs.ErrNotExist) {
		return parseSeed(path, text, err)
	}
	rand.Read(seed[:]) // never fails, says its documentation
	// Written whole under another name, and linked: a link fails if the name is taken, and shows no half file.
	aside, err := os.CreateTemp(d.path, seedFile+"-") // mode 0600
	if err != nil {
		return seed, fmt.Errorf("write the hash seed: %w", err)
	}
	defer os.Remove(aside.Name())
	_, err = fmt.Fprintln(aside, hex.EncodeToString(seed[:]))
	if err = errors.Join(err, aside.Close()); err != nil {
		return seed, fmt.Errorf("write the hash seed: %w", err)
	}
	if err := os.Link(aside.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return seed, fmt.Errorf("write the hash seed: %w", err)
	}
	text, err := os.ReadFile(path)
	return parseSeed(path, text, err)
}

func parseSeed(path string, text []byte, err error) (seed [16]byte, _ error) {
	if err != nil {
		return seed, fmt.Errorf("read the hash seed: %w", err)
	}
	digits, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(digits) != len(seed) {
		return seed, fmt.Errorf("%s does not hold 32 hexadecimal digits: remove it, and a new seed is drawn", path)
	}
	return [16]byte(digits), nil
}
