// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"time"
)

// rounds are how often every one of several contestants has its turn: the most, the least, and when no more begins beyond those.
type rounds struct {
	most, least int
	limit       time.Duration
}

// mostFailed is how many rounds may fail before it is an error.
const mostFailed = 2

// run has each of so many contestants visited once a round, in another order every time, and writes down what the visits return.
// The first round warms caches up, and is forgotten; one that fails is noted, and counts for nothing.
func (r rounds) run(ctx context.Context, contestants int, out *Record, visit func(int) ([]sample, error)) error {
	began, failed := time.Now(), 0
	for round := 0; round <= r.most && (round <= r.least || time.Since(began) < r.limit) && ctx.Err() == nil; round++ {
		var samples []sample
		load, err := observe(func() error {
			for i := range contestants {
				taken, err := visit(place(i, round, contestants))
				if err != nil {
					return err
				}
				samples = append(samples, taken...)
			}
			return nil
		})
		if err != nil {
			if failed++; failed > mostFailed {
				return err
			}
			out.Note("a round failed, and is left out: %v", err)
			continue
		}
		if round == 0 {
			continue
		}
		out.Config("round", fmt.Sprint(round))
		out.Config("others", fmt.Sprintf("%.0f%%", 100*load))
		for _, s := range samples {
			out.Sample(s.name, s.work, s.values...)
		}
	}
	// What comes next is of no round.
	out.Config("round", "")
	out.Config("others", "")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return out.Err()
}

// place is whose turn the ith of a round is: another one begins every time, and every other cycle goes backwards.
func place(i, round, n int) int {
	if round/n%2 == 1 {
		i = n - 1 - i
	}
	return (i + round) % n
}
