package plantillas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Parameters picks the parameters of WhatsApp templates out of the data of rows. Several goroutines may use it at once.
type Parameters struct {
	paths map[string][]path // by template
}

// path is the way to a value: keys of objects and positions in lists.
type path []string

// NewParameters returns the Parameters of some templates, for those who keep the paths elsewhere than in files. Each
// template has the paths of {{1}}, {{2}}, ... in order; one without parameters has none.
//
// A path is names with points between them: "nombre", "turno.hora", "items.0". A name is letters, digits, "_" and "-". In
// an object it is a key, in a list a position that begins at 0. A path that is written otherwise gives an error that wraps
// outbox.ErrInvalidOptions.
func NewParameters(paths map[string][]string) (*Parameters, error) {
	p := &Parameters{make(map[string][]path, len(paths))}
	for _, template := range slices.Sorted(maps.Keys(paths)) {
		parsed := make([]path, len(paths[template]))
		for i, s := range paths[template] {
			var err error
			if parsed[i], err = parsePath(s); err != nil {
				return nil, fmt.Errorf("%w: template %q, parameter %d: %w", outbox.ErrInvalidOptions, template, i+1, err)
			}
		}
		p.paths[template] = parsed
	}
	return p, nil
}

// Pick gives the parameters of the template m.Template out of m.Data: texts as they are, numbers as the package's comment
// says, true and false. A template that is unknown, data that is not JSON, and a value that is missing, null, blank, a
// list or an object are errors. They name the parameter, and never what the data holds.
func (p *Parameters) Pick(m transporte.Message) ([]string, error) {
	paths, ok := p.paths[m.Template]
	if !ok {
		return nil, fmt.Errorf("no WhatsApp template has the name %q", m.Template)
	}
	data, err := decode(m.Data)
	if err != nil {
		return nil, err
	}
	parameters := make([]string, len(paths))
	for i, path := range paths {
		if parameters[i], err = path.pick(data); err != nil {
			return nil, fmt.Errorf("template %q, parameter %d (%s): %w", m.Template, i+1, strings.Join(path, "."), err)
		}
	}
	return parameters, nil
}

func (p path) pick(value any) (string, error) {
	for _, name := range p {
		var key any = name
		if _, isList := value.([]any); isList {
			i, err := strconv.ParseUint(name, 10, 31)
			if err != nil || strconv.FormatUint(i, 10) != name {
				return "", fault("a list has no such position")
			}
			key = int64(i)
		}
		var err error
		if value, err = element(value, key); err != nil {
			return "", err
		}
	}
	s, err := text(value)
	if err == nil && strings.TrimSpace(s) == "" {
		return "", fault("the value is blank")
	}
	return s, err
}

func parsePath(s string) (path, error) {
	p := path(strings.Split(s, "."))
	if slices.Contains(p, "") || strings.ContainsFunc(s, outsidePath) {
		return nil, errors.New("a path is names of letters, digits, _ and - with points between them, such as turno.hora or items.0")
	}
	return p, nil
}

func outsidePath(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r)
}
