// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestControllerMetrics(t *testing.T) {
	var unready error
	c := NewController("v1", func() error { return unready })
	c.Reconciled(2*time.Millisecond, nil)
	c.Reconciled(time.Second, errors.New("no"))
	c.Stepped("front", "added")
	c.LeftOut(map[string]int{"PortConflict": 3})
	c.LeftOut(map[string]int{"PortReserved": 2})
	c.Known(1, 2, 3)
	c.Detached(4)
	get := func(path string) (int, string) {
		response := httptest.NewRecorder()
		c.Handler().ServeHTTP(response, httptest.NewRequest(http.MethodGet, path, nil))
		return response.Code, response.Body.String()
	}
	_, body := get("/metrics")
	for _, want := range []string{
		"beep_controller_reconcile_seconds_count 2\n", "beep_controller_reconcile_failures_total 1\n",
		`beep_controller_steps_total{action="added",object="front"} 1`, `beep_controller_left_out{reason="PortReserved"} 2`,
		`beep_controller_objects{kind="EndpointSlice"} 2`, "beep_controller_ready 1\n", "beep_controller_detached_nodes 4\n", `version="v1"} 1`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "PortConflict") {
		t.Error("a reason that is over is still there")
	}
	unready = errors.New("not yet")
	if code, body := get("/readyz"); code != 503 || body != "not yet\n" {
		t.Errorf("/readyz: %d %s", code, body)
	}
	if code, _ := get("/healthz"); code != 200 {
		t.Errorf("/healthz: %d", code)
	}
}
