// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// parsed is what Flags make of a command line and an environment.
func parsed(env map[string]string, args ...string) (Controller, error) {
	var c Controller
	err := NewFlags(&c).Parse(args, func(name string) (string, bool) { value, there := env[name]; return value, there })
	return c, err
}

// TestFlagsAgreeWithKong has both readers of the tags read the same words.
func TestFlagsAgreeWithKong(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		args []string
	}{
		{"nothing", nil, nil},
		{"flags", nil, []string{"--pin-dir=/p", "--node-name", "a", "--max-published-nodes", "3", "--metrics-addr="}},
		{"environment", map[string]string{"BEEP_PIN_DIR": "/p", "NODE_NAME": "a", "BEEP_MAX_PUBLISHED_NODES": "7", "BEEP_LOG_LEVEL": "debug"}, nil},
		{"a flag before its variable", map[string]string{"NODE_NAME": "a", "BEEP_MAX_PUBLISHED_NODES": "7"}, []string{"--node-name=b", "--max-published-nodes=2"}},
		{"a flag of its default before its variable", map[string]string{"BEEP_LOG_LEVEL": "debug"}, []string{"--log-level=info"}},
		{"a list", nil, []string{"--node-ip=192.0.2.1,2001:db8:b::1", "--pod-cidr=10.42.1.0/24", "--pod-cidr=2001:db8:a::/64"}},
		{"an empty variable", map[string]string{"BEEP_METRICS_ADDR": "", "BEEP_RESERVED_PORTS": ""}, nil},
		{"a variable of nobody", map[string]string{"BEEP_FLAG": "1"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parsed(tt.env, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			for name, value := range tt.env {
				t.Setenv(name, value)
			}
			var want Controller
			parser, err := kong.New(&struct{ *Controller }{&want}, kong.Exit(func(int) { t.Fatal("parser exits") }))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(tt.args); err != nil && !errors.As(err, &Problems{}) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("kong reads (-), Flags read (+):\n%s", diff)
			}
		})
	}
}

func TestFlagsRefuse(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		args []string
		want string
	}{
		{nil, []string{"--no-such-flag"}, "unknown flag: --no-such-flag"},
		{nil, []string{"--node-name"}, "flag needs an argument: --node-name"},
		{nil, []string{"--max-published-nodes=many"}, `invalid argument "many" for "--max-published-nodes" flag`},
		{map[string]string{"BEEP_MAX_PUBLISHED_NODES": "many"}, nil, "environment variable BEEP_MAX_PUBLISHED_NODES: invalid argument \"many\""},
		{nil, []string{"--node-name=a", "run"}, "unexpected argument run"},
		{nil, []string{"-h"}, ErrHelp.Error()},
		{nil, []string{"--help"}, ErrHelp.Error()},
	} {
		if _, err := parsed(tt.env, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) || errors.As(err, &Problems{}) {
			t.Errorf("%v %v: %v, want %s", tt.env, tt.args, err, tt.want)
		}
	}
}

func TestUsageNamesFlagVariableAndDefault(t *testing.T) {
	var c Controller
	usage := strings.Fields(NewFlags(&c).Usage())
	for _, want := range [][]string{
		{"--pin-dir", "DIR", "Directory"}, {"($BEEP_PIN_DIR)"}, {"--node-ip", "ADDRESS", "Address"}, {"(default", "VIP)"}, {"(default", "127.0.0.1:9963)"},
	} {
		if !strings.Contains(strings.Join(usage, " "), strings.Join(want, " ")) {
			t.Errorf("usage lacks %q:\n%s", strings.Join(want, " "), strings.Join(usage, " "))
		}
	}
	if slices.Contains(usage, "[])") {
		t.Error("usage prints empty lists as defaults")
	}
}
