package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// field is a field of a struct by its key.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	tag   reflect.StructTag
	enum  []string
}

// fields are those of a struct that have a key, those of embedded structs among them.
func fields(t reflect.Type) (all []field) {
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("yaml")
		if key == "" || key == "-" {
			continue
		}
		found := field{key: key, index: f.Index, typ: f.Type, tag: f.Tag}
		if enum, ok := f.Tag.Lookup("enum"); ok {
			found.enum = strings.Split(enum, ",")
		}
		all = append(all, found)
	}
	return all
}

// Option is a scalar option, which is also a flag and an environment variable.
type Option struct {
	Key         string // pool.max_connections
	Flag        string // pool-max-connections
	Env         string // RELAY_POOL_MAX_CONNECTIONS
	Help        string
	Placeholder string
	Bool        bool
	// Outbox: it belongs to an outbox, and not to the file as a whole.
	Outbox bool
	// Table: it says which table, so every command that uses one has it.
	Table bool

	enum []string
}

// Options are all of them, in the order of the structs.
func Options() []Option {
	return append(options(reflect.TypeFor[Outbox](), "", true), options(reflect.TypeFor[Config](), "", false)...)
}

func options(t reflect.Type, prefix string, ofOutbox bool) (all []Option) {
	for _, f := range fields(t) {
		key := join(prefix, f.key)
		switch {
		case key == "name": // a name is given in the file, or there is none
		case isScalar(f.typ):
			flag := strings.NewReplacer(".", "-", "_", "-").Replace(key)
			_, table := f.tag.Lookup("table")
			o := Option{Key: key, Flag: flag, Env: "RELAY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), Help: f.tag.Get("help"),
				Placeholder: f.tag.Get("placeholder"), Bool: f.typ == reflect.TypeFor[*bool](), Outbox: ofOutbox, Table: table, enum: f.enum}
			if f.enum != nil {
				o.Placeholder = strings.Join(f.enum, "|")
			}
			all = append(all, o)
		case f.typ.Kind() == reflect.Struct:
			all = append(all, options(f.typ, key, ofOutbox)...)
		}
	}
	return all
}

// find is the field of v by a key with points.
func find(v reflect.Value, key string) reflect.Value {
	name, rest, deeper := strings.Cut(key, ".")
	for _, f := range fields(v.Type()) {
		if f.key != name {
			continue
		}
		found := v.FieldByIndex(f.index)
		if deeper {
			return find(found, rest)
		}
		return found
	}
	return reflect.Value{}
}

// Keys are the names of all keys of the file.
func Keys() []string {
	found := map[string]bool{}
	types := []reflect.Type{reflect.TypeFor[Config](), reflect.TypeFor[Channel]()}
	for _, make := range senders {
		types = append(types, reflect.TypeOf(make()))
	}
	for _, t := range types {
		gatherKeys(t, found)
	}
	return slices.Sorted(maps.Keys(found))
}

func gatherKeys(t reflect.Type, found map[string]bool) {
	switch {
	case isScalar(t):
	case t.Kind() == reflect.Struct:
		for _, f := range fields(t) {
			found[f.key] = true
			gatherKeys(f.typ, found)
		}
	case t.Kind() != reflect.Interface:
		gatherKeys(t.Elem(), found)
	}
}
