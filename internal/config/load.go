package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// DefaultFile is read if it exists and no other is named.
const DefaultFile = "relay.yaml"

// Source is where a configuration comes from.
type Source struct {
	File   string            // --config
	Outbox string            // --outbox: the only one that is wanted
	Flags  map[string]string // by the names of Options
	Env    func(string) (string, bool)
}

// Load reads the file, puts what the environment and the flags say over it and checks everything that can be checked
// without a database. Without a file there is one outbox, by the environment and the flags. Its error is one or several of
// type *Error, which Errors tells apart.
func Load(s Source) (*Config, error) {
	c, err := s.read()
	if err != nil {
		return nil, err
	}
	if err := c.choose(s.selected()); err != nil {
		return nil, err
	}
	if err := errors.Join(c.override(s)...); err != nil {
		return nil, err
	}
	if err := errors.Join(c.check(s.Env)...); err != nil {
		return nil, err
	}
	return c, nil
}

func (s Source) lookup(name string) string {
	value, _ := s.Env(name)
	return value
}

func (s Source) selected() string {
	if s.Outbox != "" {
		return s.Outbox
	}
	return s.lookup("RELAY_OUTBOX")
}

func (s Source) read() (*Config, error) {
	file, named := s.File, "--config"
	if file == "" {
		file, named = s.lookup("RELAY_CONFIG"), "RELAY_CONFIG"
	}
	must := file != ""
	if !must {
		file = DefaultFile
	}
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return &Config{Outboxes: []Outbox{{path: "outboxes[0]"}}, places: places{}}, nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Where: file, Text: "there is no such file, which " + named + " names"}
	case err != nil:
		return nil, &Error{Where: file, Text: fmt.Sprintf("cannot be read: %v", errors.Unwrap(err))}
	}
	return parse(file, content, s.Env)
}

// parse reads the text of a file.
func parse(file string, content []byte, env func(string) (string, bool)) (*Config, error) {
	tree, err := parser.ParseBytes(content, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	c := &Config{places: places{"": file}}
	d := &decoder{scalars: scalars{filepath.Dir(file)}, file: file, env: env, anchors: anchorsOf{}, places: c.places}
	if len(tree.Docs) > 1 {
		return nil, &Error{Where: file, Text: "has several documents (---): only one is allowed"}
	}
	for _, doc := range tree.Docs {
		if doc.Body == nil {
			continue
		}
		ast.Walk(anchorsOf(d.anchors), doc.Body)
		d.value("", doc.Body, reflect.ValueOf(c).Elem())
	}
	for i := range c.Outboxes {
		c.Outboxes[i].path = fmt.Sprintf("outboxes[%d]", i)
	}
	if len(d.faults) == 0 && len(c.Outboxes) == 0 {
		d.faults = append(d.faults, c.fault("outboxes", "there are none: write at least one, such as "+
			"outboxes: [{name: main, database: '${DATABASE_URL}', channels: {correo: {sender: print}}}]"))
	}
	return c, errors.Join(d.faults...)
}

// syntaxError is the parser's complaint without the lines of the file that it shows: a secret may stand there.
func syntaxError(file string, err error) error {
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Error{Where: file, Text: "is not YAML"}
	}
	return &Error{Where: place(file, lineOf(e.GetToken())), Text: "is not YAML: " + e.GetMessage()}
}

// choose keeps only the outbox of a name.
func (c *Config) choose(name string) error {
	if name == "" {
		return nil
	}
	var names []string
	for _, o := range c.Outboxes {
		if o.Name == name {
			c.Outboxes = []Outbox{o}
			return nil
		}
		names = append(names, o.Name)
	}
	if len(c.Outboxes) == 1 && c.Outboxes[0].Name == "" {
		return &Error{Where: "--outbox", Text: fmt.Sprintf("there is no outbox %q: the only one has no name, so leave it out", name)}
	}
	return &Error{Where: "--outbox", Text: fmt.Sprintf("there is no outbox %q in the configuration%s", name, suggestion(name, names))}
}

// override puts the environment and the flags over the file.
func (c *Config) override(s Source) (faults []error) {
	for _, o := range Options() {
		text, where := s.lookup(o.Env), o.Env
		if flag, ok := s.Flags[o.Flag]; ok {
			text, where = flag, "--"+o.Flag
			if flag == "" { // of a variable that is not set, perhaps: not what stands elsewhere instead
				faults = append(faults, &Error{Where: where, Text: "is empty: give a value, or leave it out"})
			}
		}
		if text == "" {
			continue
		}
		if err := c.set(o, text, where); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

func (c *Config) set(o Option, text, where string) error {
	root, key := reflect.ValueOf(c).Elem(), o.Key
	if o.Outbox {
		if len(c.Outboxes) > 1 {
			return &Error{Where: where, Text: "concerns one outbox, and there are several: choose one with --outbox"}
		}
		root, key = reflect.ValueOf(&c.Outboxes[0]).Elem(), join(c.Outboxes[0].path, o.Key)
	}
	c.places[key] = where
	if o.enum != nil && !slices.Contains(o.enum, text) {
		return &Error{Where: where, Text: fmt.Sprintf("must be %s, got %q", oneOf(o.enum), text)}
	}
	err := scalars{}.set(find(root, o.Key), text)
	var misfit *misfit
	if errors.As(err, &misfit) {
		return &Error{Where: where, Text: fmt.Sprintf("%v, got %q", misfit, text)}
	}
	if err != nil {
		return &Error{Where: where, Text: err.Error()}
	}
	return nil
}
