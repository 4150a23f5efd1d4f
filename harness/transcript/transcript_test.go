// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestWritersAtOnce(t *testing.T) {
	const writers, lines = 8, 100
	var (
		printed Transcript
		group   sync.WaitGroup
	)
	for i := range writers {
		group.Go(func() {
			for j := range lines {
				fmt.Fprintf(&printed, "%d/%d\n", i, j)
				if !strings.HasSuffix(printed.String(), "\n") {
					t.Error("half a line was read")
				}
			}
		})
	}
	group.Wait()
	if got := strings.Count(printed.String(), "\n"); got != writers*lines {
		t.Errorf("%d lines of %d", got, writers*lines)
	}
}
