// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/spf13/pflag"
)

// Flags reads a command line and the environment into a struct, by the tags of its fields that kong reads for `beep`:
// name, env, default, placeholder and help. It is for a program that links Kubernetes: kong looks methods up by name,
// and once anything does the linker keeps every method of every type, which doubled the controller's memory.
type Flags struct {
	set *pflag.FlagSet
	// env are the variables that stand in for flags, by the flags' names.
	env map[string]string
}

// ErrHelp is what Parse returns when --help or -h is asked for.
var ErrHelp = pflag.ErrHelp

// NewFlags takes the fields of *into that have a name, of embedded structs too, and gives them their defaults. They
// are of type bool, int, string or []string, which is repeatable or separated by commas; it panics at any other, and
// at a default that is none of its type.
func NewFlags[T any](into *T) *Flags {
	f := &Flags{pflag.NewFlagSet("", pflag.ContinueOnError), map[string]string{}}
	f.set.SortFlags = false
	f.set.Usage = func() {} // whoever calls prints
	value := reflect.ValueOf(into).Elem()
	for _, field := range reflect.VisibleFields(value.Type()) {
		if name := field.Tag.Get("name"); name != "" {
			f.add(name, field.Tag, value.FieldByIndex(field.Index))
		}
	}
	return f
}

func (f *Flags) add(name string, tag reflect.StructTag, value reflect.Value) {
	help, initial := tag.Get("help"), tag.Get("default")
	if env := tag.Get("env"); env != "" {
		f.env[name] = env
		help += " ($" + env + ")"
	}
	switch to := value.Addr().Interface().(type) {
	case *bool:
		f.set.BoolVar(to, name, false, help)
	case *int:
		number, err := strconv.Atoi(initial)
		if err != nil {
			panic(fmt.Sprintf("the default of --%s: %v", name, err))
		}
		f.set.IntVar(to, name, number, help)
	case *string:
		f.set.StringVar(to, name, initial, help)
	case *[]string:
		f.set.StringSliceVar(to, name, nil, help)
	default:
		panic(fmt.Sprintf("--%s is of type %T", name, to))
	}
	if placeholder := tag.Get("placeholder"); placeholder != "" {
		flag := f.set.Lookup(name)
		flag.Value, flag.DefValue = named{flag.Value, placeholder}, initial
	}
}

// named is a value that usage calls by its placeholder.
type named struct {
	pflag.Value
	placeholder string
}

// Type is the placeholder, which pflag prints.
func (n named) Type() string { return n.placeholder }

// Parse fills the struct: a flag replaces its variable, and a variable, also an empty one, the default. lookup is
// os.LookupEnv. The error is of usage, for which Validate is not: a flag that is unknown or has no value, a word that
// is no flag, or one where a number belongs. It is ErrHelp if help is asked for.
func (f *Flags) Parse(args []string, lookup func(string) (string, bool)) error {
	if err := f.set.Parse(args); err != nil {
		return err
	}
	if f.set.NArg() > 0 {
		return fmt.Errorf("unexpected argument %s", f.set.Arg(0))
	}
	var fault error
	f.set.VisitAll(func(flag *pflag.Flag) {
		value, there := lookup(f.env[flag.Name])
		if fault != nil || flag.Changed || f.env[flag.Name] == "" || !there {
			return
		}
		if err := f.set.Set(flag.Name, value); err != nil {
			fault = fmt.Errorf("environment variable %s: %w", f.env[flag.Name], err)
		}
	})
	return fault
}

// Usage lists the flags for a person, each with its default and its variable.
func (f *Flags) Usage() string { return f.set.FlagUsagesWrapped(usageWidth) }

// usageWidth is in characters.
const usageWidth = 120
