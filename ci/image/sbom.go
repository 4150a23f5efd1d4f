// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/CycloneDX/cyclonedx-go"
)

// billOfMaterials lists, as CycloneDX, the Go modules that the linker says are in the programs of a directory, and the
// version of Go. It has no time and no serial number: the same programs have the same bill.
func billOfMaterials(dir string) ([]byte, error) {
	components := map[string]cyclonedx.Component{}
	for _, name := range executables {
		info, err := buildinfo.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("modules of a program: %w (make image builds it)", err)
		}
		add := func(path, version string) {
			purl := "pkg:golang/" + path + "@" + version
			components[purl] = cyclonedx.Component{
				Type: cyclonedx.ComponentTypeLibrary, BOMRef: purl, Name: path, Version: version, PackageURL: purl,
			}
		}
		add("std", info.GoVersion)
		for _, module := range info.Deps {
			if module.Replace != nil {
				module = module.Replace
			}
			add(module.Path, module.Version)
		}
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &cyclonedx.Component{Type: cyclonedx.ComponentTypeApplication, Name: "beep"}}
	list := make([]cyclonedx.Component, 0, len(components))
	for _, purl := range slices.Sorted(maps.Keys(components)) {
		list = append(list, components[purl])
	}
	bom.Components = &list
	var text bytes.Buffer
	err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return text.Bytes(), err
}
