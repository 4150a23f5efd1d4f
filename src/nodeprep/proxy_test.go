// SPDX-License-Identifier: Apache-2.0

package nodeprep

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestJudgeProxy(t *testing.T) {
	silence := errors.New("connection refused")
	for _, tt := range []struct {
		name    string
		proxy   Proxy
		warning string // a part of the only one; none if empty
		refused bool
	}{
		{"iptables", Proxy{Mode: "iptables"}, "", false},
		{"nftables", Proxy{Mode: "nftables"}, "", false},
		{"IPVS, by its own word", Proxy{Mode: "ipvs", IPVS: true}, "", true},
		{"IPVS that has made no device yet", Proxy{Mode: "ipvs"}, "", true},
		{"IPVS, by its device", Proxy{Silence: silence, IPVS: true}, "", true},
		{"a device that is left over", Proxy{Mode: "nftables", IPVS: true}, "ip link delete kube-ipvs0", false},
		{"nobody", Proxy{Silence: silence}, "no kube-proxy answers (connection refused)", false},
		{"Cilium instead", Proxy{Silence: silence, Cilium: true}, "if it replaces kube-proxy", false},
		{"Cilium beside kube-proxy", Proxy{Mode: "iptables", Cilium: true}, "", false},
		{"a mode of the future", Proxy{Mode: "ebpf"}, `mode "ebpf"`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			warnings, err := tt.proxy.Judge()
			if errors.Is(err, ErrIPVS) != tt.refused || (err != nil) != tt.refused {
				t.Errorf("refused with %v, want it: %t", err, tt.refused)
			}
			if got := strings.Join(warnings, "\n"); !strings.Contains(got, tt.warning) || (got == "") != (tt.warning == "") || len(warnings) > 1 {
				t.Errorf("warnings %q, want one with %q", warnings, tt.warning)
			}
		})
	}
}

func TestAskMode(t *testing.T) {
	for _, tt := range []struct {
		name    string
		status  int
		body    string
		mode    string
		refused bool
	}{
		{"a word", http.StatusOK, "nftables\n", "nftables", false},
		{"another page", http.StatusNotFound, "404 page not found", "", true},
		{"something long", http.StatusOK, strings.Repeat("x", 1<<20), strings.Repeat("x", 32), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			if mode, err := askMode(t.Context(), server.URL); mode != tt.mode || (err != nil) != tt.refused {
				t.Errorf("%q, %v", mode, err)
			}
		})
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	if _, err := askMode(t.Context(), server.URL); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("nobody there: %v", err)
	}
}
