package main

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/mafesoftware/outbox-relay/internal/config"
)

// optionFlags are flags made of the configuration's options, so that each has one name and one description.
type optionFlags struct {
	options []config.Option
	target  any // pointer to a struct with a field for each option: *string, or *bool for a flag without a value
}

func isTable(o config.Option) bool { return o.Table }
func isRelay(o config.Option) bool { return !o.Table }

func newOptionFlags(wanted func(config.Option) bool) *optionFlags {
	f := &optionFlags{}
	var fields []reflect.StructField
	for _, o := range config.Options() {
		if !wanted(o) {
			continue
		}
		f.options = append(f.options, o)
		typ, group := reflect.TypeFor[*string](), "Configuration"
		if o.Bool {
			typ = reflect.TypeFor[*bool]()
		}
		if !o.Table {
			group = "Options"
		}
		tag := fmt.Sprintf(`name:"%s" help:%s placeholder:"%s" group:"%s"`, o.Flag, strconv.Quote(o.Help), o.Placeholder, group)
		fields = append(fields, reflect.StructField{Name: fieldName(o), Type: typ, Tag: reflect.StructTag(tag)})
	}
	f.target = reflect.New(reflect.StructOf(fields)).Interface()
	return f
}

func fieldName(o config.Option) string { return "O_" + strings.ReplaceAll(o.Flag, "-", "_") }

// read puts the flags that were given into a map by their names.
func (f *optionFlags) read(into map[string]string) {
	target := reflect.ValueOf(f.target).Elem()
	for i, o := range f.options {
		if v := target.Field(i); !v.IsNil() {
			into[o.Flag] = fmt.Sprint(v.Elem().Interface())
		}
	}
}
