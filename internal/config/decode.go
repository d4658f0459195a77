package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// decoder fills structs from a YAML tree. It is not the library's, because a value here may name an environment variable
// or a file, reads the same as in a flag, and is remembered with its line: what is found wrong with it later can be shown
// there. It goes on after a fault, so that all of them are told at once.
type decoder struct {
	scalars scalars
	file    string
	env     func(string) (string, bool)
	anchors map[string]ast.Node
	places  places
	faults  []error
	aliases int // followed so far
}

func (d *decoder) fault(key string, line int, format string, args ...any) {
	d.faults = append(d.faults, &Error{Where: place(d.file, line), Key: key, Text: fmt.Sprintf(format, args...)})
}

// value reads n into v. An absent value (key: ) leaves v as it is.
func (d *decoder) value(key string, n ast.Node, v reflect.Value) {
	n = d.resolve(key, n)
	if n == nil || n.Type() == ast.NullType {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(key, n, v.Elem())
		return
	case reflect.Struct:
		if !isScalar(v.Type()) {
			d.object(key, n, v)
			return
		}
	case reflect.Map:
		d.table(key, n, v)
		return
	case reflect.Slice:
		d.list(key, n, v)
		return
	}
	text, ok := scalarText(n)
	if !ok {
		d.fault(key, line(n), "must be a single value, not a %s", kindOf(n))
		return
	}
	d.scalar(key, line(n), text, v)
}

func (d *decoder) scalar(key string, line int, text string, v reflect.Value) {
	expanded, err := expand(text, d.env)
	if err == nil {
		err = d.scalars.set(v, expanded)
	}
	var misfit *misfit
	switch {
	case errors.As(err, &misfit):
		d.fault(key, line, "%v, got %q", misfit, text) // as it stands in the file: a variable's value may be secret
	case err != nil:
		d.fault(key, line, "%v", err)
	}
}

// slot is a key that a struct takes, and where its value goes.
type slot struct {
	field
	value reflect.Value
}

// object reads a mapping into a struct.
func (d *decoder) object(key string, n ast.Node, v reflect.Value) {
	entries, ok := d.entries(key, n)
	if !ok {
		return
	}
	slots := slotsOf(v)
	if channel, ok := v.Addr().Interface().(*Channel); ok {
		if channel.Options = d.sender(key, line(n), entries); channel.Options == nil {
			return
		}
		slots = append(slots, slotsOf(reflect.ValueOf(channel.Options).Elem())...)
	}
	for _, e := range entries {
		at := join(key, e.key)
		d.places[at] = place(d.file, e.line)
		i := slices.IndexFunc(slots, func(s slot) bool { return s.key == e.key })
		if i < 0 {
			d.fault("", e.line, "unknown key %q%s", at, suggestion(e.key, keysOf(slots)))
			continue
		}
		d.value(at, e.value, slots[i].value)
		d.enum(at, e, slots[i])
	}
	for _, s := range slots {
		_, must := s.tag.Lookup("required")
		if must && !slices.ContainsFunc(entries, func(e entry) bool { return e.key == s.key }) {
			d.fault(key, line(n), "needs %s: %s", s.key, s.tag.Get("help"))
		}
	}
}

func slotsOf(v reflect.Value) (all []slot) {
	for _, f := range fields(v.Type()) {
		all = append(all, slot{f, v.FieldByIndex(f.index)})
	}
	return all
}

func keysOf(slots []slot) (keys []string) {
	for _, s := range slots {
		keys = append(keys, s.key)
	}
	return keys
}

// enum checks a field that has only certain values.
func (d *decoder) enum(key string, e entry, s slot) {
	if s.enum == nil || s.value.String() == "" || slices.Contains(s.enum, s.value.String()) {
		return
	}
	text, _ := scalarText(d.resolve(key, e.value))
	d.fault(key, e.line, "must be %s, got %q", oneOf(s.enum), text)
}

// sender makes the options of a channel's sender, or nil.
func (d *decoder) sender(key string, line int, entries []entry) any {
	for _, e := range entries {
		if e.key != "sender" {
			continue
		}
		name, _ := scalarText(d.resolve(key, e.value))
		if make, ok := senders[name]; ok {
			return make()
		}
		d.fault(join(key, "sender"), e.line, "must be %s, got %q", oneOf(senderNames()), name)
		return nil
	}
	d.fault(key, line, "needs a sender: %s", oneOf(senderNames()))
	return nil
}

func (d *decoder) table(key string, n ast.Node, v reflect.Value) {
	entries, ok := d.entries(key, n)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, e := range entries {
		at := join(key, e.key)
		d.places[at] = place(d.file, e.line)
		element := reflect.New(v.Type().Elem()).Elem()
		if n := d.resolve(at, e.value); n != nil && n.Type() == ast.NullType && element.Kind() == reflect.Struct {
			d.fault(at, e.line, "is empty: give it its options, or leave it out")
			continue
		}
		d.value(at, e.value, element)
		v.SetMapIndex(reflect.ValueOf(e.key), element)
	}
}

func (d *decoder) list(key string, n ast.Node, v reflect.Value) {
	sequence, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fault(key, line(n), "must be a list, such as [a, b], not a %s", kindOf(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(sequence.Values), len(sequence.Values)))
	for i, value := range sequence.Values {
		at := fmt.Sprintf("%s[%d]", key, i)
		d.places[at] = place(d.file, line(value))
		d.value(at, value, v.Index(i))
	}
}

// isScalar tells whether values of a type stand in one text.
func isScalar(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer:
		return t.Elem().Kind() == reflect.Bool
	case reflect.Map, reflect.Slice, reflect.Interface:
		return false
	case reflect.Struct:
		return reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	}
	return true
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func oneOf(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
