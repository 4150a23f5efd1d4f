// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/beep-lb/beep/harness/vm/job"
)

func TestEventsAreReadAsTheyWereSaid(t *testing.T) {
	said := []job.Event{
		{Run: "a", Output: "line\nhalf a li"},
		{Run: "a", End: &job.End{Code: 137, Error: "signal: killed"}},
		{Run: "b", Output: "\x1b[1m<&>\u2028"},
		{Run: "b", End: &job.End{}},
	}
	var wire bytes.Buffer
	for say, i := json.NewEncoder(&wire), 0; i < len(said); i++ {
		if err := say.Encode(said[i]); err != nil {
			t.Fatal(err)
		}
	}
	var heard []job.Event
	if err := job.Read(bytes.NewReader(wire.Bytes()), func(event job.Event) { heard = append(heard, event) }); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(said, heard) {
		t.Errorf("heard %+v, said %+v", heard, said)
	}

	heard = nil
	cut := wire.Bytes()[:wire.Len()-5]
	err := job.Read(bytes.NewReader(cut), func(event job.Event) { heard = append(heard, event) })
	if err == nil || !strings.Contains(err.Error(), "event of the machine") || len(heard) != len(said)-1 {
		t.Errorf("the last event is cut short: %d events, %v", len(heard), err)
	}
}
