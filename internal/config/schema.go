package config

import (
	"encoding/json"
	"maps"
	"reflect"
)

// object is a JSON object.
type object = map[string]any

// Schema is the JSON schema of the file, by which editors complete and check it.
func Schema() ([]byte, error) {
	schema := schemaOf(reflect.TypeFor[Config]())
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["$defs"] = kinds
	schema["title"] = "relay.yaml"
	schema["required"] = []string{"outboxes"}
	text, err := json.MarshalIndent(schema, "", "  ")
	return append(text, '\n'), err
}

// kinds are the forms of single values. Each may be a variable of the environment, too.
var kinds = object{
	"variable": object{"type": "string", "pattern": `\$\{[A-Za-z_][A-Za-z0-9_]*\}`},
	"time":     orVariable(object{"type": "string", "pattern": `^(0|[0-9]+d|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`}),
	"bool":     orVariable(object{"type": "boolean"}),
	"integer":  orVariable(object{"type": "integer"}),
	"number":   orVariable(object{"type": "number"}),
	"text":     object{"type": []string{"string", "number", "boolean"}}, // phone_number_id: 106540352242922
}

func orVariable(form object) object { return object{"anyOf": []object{form, kind("variable")}} }

func kind(name string) object { return object{"$ref": "#/$defs/" + name} }

func schemaOf(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[Duration]():
		return kind("time")
	case reflect.TypeFor[Channel]():
		return channelSchema()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		if !isScalar(t) {
			return object{"type": "object", "properties": properties(t), "additionalProperties": false}
		}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Bool:
		return kind("bool")
	case reflect.Int, reflect.Int32, reflect.Uint16:
		return kind("integer")
	case reflect.Float64:
		return kind("number")
	}
	return kind("text")
}

func properties(t reflect.Type) object {
	all := object{}
	for _, f := range fields(t) {
		schema := schemaOf(f.typ)
		if f.enum != nil {
			schema = orVariable(object{"enum": f.enum})
		}
		schema["description"] = f.tag.Get("help")
		all[f.key] = schema
	}
	return all
}

// channelSchema has one form for each sender.
func channelSchema() object {
	var forms []object
	for _, name := range senderNames() {
		options := reflect.TypeOf(senders[name]()).Elem()
		all := properties(reflect.TypeFor[Channel]())
		maps.Copy(all, properties(options))
		all["sender"] = object{"const": name, "description": "What sends the messages of the channel."}
		forms = append(forms, object{"type": "object", "properties": all, "additionalProperties": false, "required": append([]string{"sender"}, required(options)...)})
	}
	return object{"oneOf": forms}
}

func required(t reflect.Type) (keys []string) {
	for _, f := range fields(t) {
		if _, must := f.tag.Lookup("required"); must {
			keys = append(keys, f.key)
		}
	}
	return keys
}
