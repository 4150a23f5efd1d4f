// SPDX-License-Identifier: Apache-2.0

// Package repository reads the files of the repository that no compiler reads: documents, workflows, the Makefile. Its
// tests hold those to what they name. Invariant: it only reads, and only what is in the checkout.
package repository

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extensionast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"

	"github.com/beep-lb/beep/harness/checkout"
)

// Document is a Markdown file.
type Document struct {
	// Path is relative to the root of the repository.
	Path string
	// Links are the destinations of its links and pictures, as written.
	Links []string
	// Headings are what a link's fragment may name, as GitHub makes them of headings.
	Headings []string
	// Tables are its tables: rows of cells, the head first, in Markdown.
	Tables [][][]string
	// Fences are its fenced blocks.
	Fences []Fence
}

// Fence is a fenced block of a document.
type Fence struct {
	// Info is the word or words after the fence: sh, sh no-run.
	Info string
	Text string
	// Section is the heading above, as Document.Headings has it; "" if there is none.
	Section string
}

// Documents are all Markdown files of the repository, by path; what was built or is not for readers is left out.
func Documents() ([]Document, error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	var documents []Document
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || filepath.Dir(path) == root && (d.Name() == "bin" || d.Name() == "build")):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		document, err := Read(name)
		documents = append(documents, document)
		return err
	})
	return documents, err
}

// Read reads one document by its path from the root of the repository.
func Read(path string) (Document, error) {
	file, err := checkout.Path(path)
	if err != nil {
		return Document{}, err
	}
	source, err := os.ReadFile(file)
	if err != nil {
		return Document{}, err
	}
	document := Document{Path: path}
	tree := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	err = ast.Walk(tree, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			document.take(node, source)
		}
		return ast.WalkContinue, nil
	})
	return document, err
}

func (d *Document) take(node ast.Node, source []byte) {
	switch node := node.(type) {
	case *ast.Link:
		d.Links = append(d.Links, string(node.Destination))
	case *ast.Image:
		d.Links = append(d.Links, string(node.Destination))
	case *ast.Heading:
		d.Headings = append(d.Headings, slug(string(node.Lines().Value(source))))
	case *ast.FencedCodeBlock:
		fence := Fence{Text: string(node.Lines().Value(source))}
		if node.Info != nil {
			fence.Info = string(node.Info.Value(source))
		}
		if len(d.Headings) > 0 {
			fence.Section = d.Headings[len(d.Headings)-1]
		}
		d.Fences = append(d.Fences, fence)
	case *extensionast.Table:
		d.Tables = append(d.Tables, table(node, source))
	}
}

func table(node *extensionast.Table, source []byte) [][]string {
	var rows [][]string
	for row := node.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for cell := row.FirstChild(); cell != nil; cell = cell.NextSibling() {
			cells = append(cells, string(cell.Lines().Value(source)))
		}
		rows = append(rows, cells)
	}
	return rows
}

var notInSlugs = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)

// slug is what GitHub calls a heading in links.
func slug(heading string) string {
	return strings.ReplaceAll(notInSlugs.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
}

var (
	targetLine = regexp.MustCompile(`(?m)^([a-zA-Z][a-zA-Z0-9_ -]*):(?:[^=]|$)`)
	rigTarget  = regexp.MustCompile(`^rig-([a-z0-9-]+)$`)
)

// MakeTargets says which of the words are no targets of the Makefile. A rig is one if it has a folder.
func MakeTargets(words []string) (unknown []string, err error) {
	root, err := checkout.Root()
	if err != nil {
		return nil, err
	}
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return nil, err
	}
	makefile = bytes.ReplaceAll(makefile, []byte("\\\n"), nil)
	var targets []string
	for _, match := range targetLine.FindAllSubmatch(makefile, -1) {
		targets = append(targets, strings.Fields(string(match[1]))...)
	}
	for _, word := range words {
		if slices.Contains(targets, word) {
			continue
		}
		if match := rigTarget.FindStringSubmatch(word); match != nil {
			if _, err := os.Stat(filepath.Join(root, "rigs", match[1])); err == nil {
				continue
			}
		}
		unknown = append(unknown, word)
	}
	return unknown, nil
}
