// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"strings"
	"sync"
)

// lines is a log that may be read while it is written.
type lines struct {
	lock sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.text.String()
}
