// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"gonum.org/v1/gonum/stat"
)

// record is everything that a run wrote down.
type record struct {
	machine []string // key: value
	series  []*series
	others  []float64 // of each round, the share of the machine that others used, in percent
}

// series are all samples of one benchmark, in the order of the rounds.
type series struct {
	name   string
	keys   map[string]string // of its name; "" is the part before the first slash
	values map[string][]float64
	rounds []string
}

// read reads a record.
func read(from io.Reader, name string) (*record, error) {
	r := &record{}
	byName := map[string]*series{}
	seen := "" // round
	for reader := benchfmt.NewReader(from, name); reader.Scan(); {
		result, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			if bad, is := reader.Result().(*benchfmt.SyntaxError); is {
				return nil, bad
			}
			continue
		}
		if r.machine == nil {
			for _, c := range result.Config {
				if c.Key != "round" && c.Key != "others" {
					r.machine = append(r.machine, fmt.Sprintf("%s: %s", c.Key, c.Value))
				}
			}
		}
		full := result.Name.String()
		s := byName[full]
		if s == nil {
			s = &series{name: full, keys: keysOf(full), values: map[string][]float64{}}
			byName[full] = s
			r.series = append(r.series, s)
		}
		for _, v := range result.Values {
			if v.OrigUnit != "" {
				v.Value, v.Unit = v.OrigValue, v.OrigUnit
			}
			s.values[v.Unit] = append(s.values[v.Unit], v.Value)
		}
		s.rounds = append(s.rounds, result.GetConfig("round"))
		// A round's samples follow each other.
		if at := s.keys["path"] + s.keys["ip"] + s.keys["services"] + s.keys["curve"] + result.GetConfig("round"); at != seen {
			seen = at
			if percent, err := strconv.ParseFloat(strings.TrimSuffix(result.GetConfig("others"), "%"), 64); err == nil {
				r.others = append(r.others, percent)
			}
		}
	}
	return r, nil
}

// keysOf takes a name apart, as Packet/dir=in/path=local.
func keysOf(name string) map[string]string {
	keys := map[string]string{}
	for i, part := range strings.Split(name, "/") {
		key, value, _ := strings.Cut(part, "=")
		if i == 0 {
			key, value = "", part
		}
		keys[key] = value
	}
	return keys
}

// number is a key's value as a number; 0 if it is none.
func (s *series) number(key string) float64 {
	n, _ := strconv.ParseFloat(s.keys[key], 64)
	return n
}

// find are the series whose name begins so, in the order of the record.
func (r *record) find(prefix string) (all []*series) {
	for _, s := range r.series {
		if strings.HasPrefix(s.name, prefix) {
			all = append(all, s)
		}
	}
	return all
}

// get is the series of that name; nil if there is none.
func (r *record) get(name string) *series {
	for _, s := range r.series {
		if s.name == name {
			return s
		}
	}
	return nil
}

// spread is what a list of samples comes to.
type spread struct {
	low, median, high float64 // quartiles
	n                 int
}

func spreadOf(samples []float64) spread {
	if len(samples) == 0 {
		return spread{}
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := func(p float64) float64 { return stat.Quantile(p, stat.LinInterp, sorted, nil) }
	s := spread{at(0.25), at(0.5), at(0.75), len(sorted)}
	if len(sorted)%2 == 0 {
		s.median = (sorted[len(sorted)/2-1] + sorted[len(sorted)/2]) / 2
	} else {
		s.median = sorted[len(sorted)/2]
	}
	return s
}

// paired combines two lists of the same rounds, sample by sample.
func paired(a, b []float64, combine func(a, b float64) float64) []float64 {
	var all []float64
	for i := range min(len(a), len(b)) {
		all = append(all, combine(a[i], b[i]))
	}
	return all
}

func minus(a, b float64) float64 { return a - b }

func ratio(a, b float64) float64 { return a / b }
