package plantillas

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mafesoftware/outbox-relay/internal/whatsappcloud"
	"github.com/mafesoftware/outbox-relay/outbox"
	"github.com/mafesoftware/outbox-relay/transporte"
)

// Parameters picks the parameters of WhatsApp templates, and their language, out of the data of rows. Several goroutines
// may use it at once. Options gives all of it to transporte.NewWhatsApp.
type Parameters struct {
	templates map[string]places
}

// places are where in the data a template has what it needs.
type places struct {
	parameters []path
	names      []string // of the parameters, in the same order; none when they are by position
	language   path     // nil when it stands nowhere
}

// languageMark begins the entry for the language. No path begins so.
const languageMark = "@idioma"

// path is the way to a value: keys of objects and positions in lists.
type path []string

// NewParameters returns the Parameters of some templates, for those who keep the paths elsewhere than in files. Each
// template has the paths of {{1}}, {{2}}, ... in order; one without parameters has none. One that was made with names has
// them before the paths: "hora = turno.hora" for {{hora}}, in any order.
//
// A path is names with points between them: "nombre", "turno.hora", "items.0". A name is letters, digits, "_" and "-". In
// an object it is a key, in a list a position that begins at 0. One entry more, "@idioma cliente.idioma", is no parameter
// but says where the language stands. A path or a name that is written otherwise, a name that stands twice or is missing
// beside others, and a second language give an error that wraps outbox.ErrInvalidOptions.
func NewParameters(paths map[string][]string) (*Parameters, error) {
	p := &Parameters{make(map[string]places, len(paths))}
	for _, template := range slices.Sorted(maps.Keys(paths)) {
		var t places
		for i, s := range paths[template] {
			if err := t.add(s); err != nil {
				return nil, fmt.Errorf("%w: template %q, entry %d: %w", outbox.ErrInvalidOptions, template, i+1, err)
			}
		}
		p.templates[template] = t
	}
	return p, nil
}

// add takes in one entry: the path of the next parameter, perhaps with its name, or of the language.
func (t *places) add(s string) error {
	if rest, isLanguage := strings.CutPrefix(s, languageMark+" "); isLanguage {
		return t.addLanguage(strings.TrimSpace(rest))
	}
	name, way, named := strings.Cut(s, "=")
	if !named {
		name, way = "", s
	} else if name, way = strings.TrimSpace(name), strings.TrimSpace(way); !whatsappcloud.ValidName(name) {
		return errors.New("a parameter's name is letters a to z, digits and _, and not only digits, such as hora = turno.hora")
	}
	p, err := parsePath(way)
	switch {
	case err != nil:
		return err
	case len(t.parameters) > 0 && named != (len(t.names) > 0):
		return errors.New("either all parameters of a template have names or none has: write it as the others are written")
	case slices.Contains(t.names, name):
		return fmt.Errorf("the name %s stands twice: leave one of them out", name)
	case named:
		t.names = append(t.names, name)
	}
	t.parameters = append(t.parameters, p)
	return nil
}

func (t *places) addLanguage(way string) error {
	p, err := parsePath(way)
	switch {
	case err != nil:
		return err
	case t.language != nil:
		return errors.New("a template has one language: leave one of its " + languageMark + " out")
	}
	t.language = p
	return nil
}

// Options are what transporte.NewWhatsApp needs to know of the templates: parameters, their names, the language.
func (p *Parameters) Options() transporte.WhatsAppOptions {
	return transporte.WhatsAppOptions{Parameters: p.Pick, Names: p.Names, Language: p.Language}
}

// Pick gives the parameters of the template m.Template out of m.Data: texts as they are, numbers as the package's comment
// says, true and false. A template that is unknown, data that is not JSON, and a value that is missing, null, blank, a
// list or an object are errors. They name the parameter, and never what the data holds.
func (p *Parameters) Pick(m transporte.Message) ([]string, error) {
	t, ok := p.templates[m.Template]
	if !ok {
		return nil, fmt.Errorf("no WhatsApp template has the name %q", m.Template)
	}
	data, err := decode(m.Data)
	if err != nil {
		return nil, err
	}
	parameters := make([]string, len(t.parameters))
	for i, path := range t.parameters {
		if parameters[i], err = path.pick(data); err != nil {
			return nil, fmt.Errorf("template %q, parameter %d (%s): %w", m.Template, i+1, strings.Join(path, "."), err)
		}
	}
	return parameters, nil
}

// Names gives the names of the parameters that Pick gives, in the same order, and none for a template whose parameters are
// by position or that is unknown. It never fails; it is what transporte.WhatsAppOptions takes.
func (p *Parameters) Names(m transporte.Message) ([]string, error) {
	return slices.Clone(p.templates[m.Template].names), nil
}

// Language picks the language of the template m.Template out of m.Data; it is what transporte.WhatsAppOptions takes. It is
// empty, which stands for the tenant's, if the template does not say where the language stands, and if that is null or
// blank. A value that is missing or no text is an error, and so is data that is not JSON.
func (p *Parameters) Language(m transporte.Message) (string, error) {
	at := p.templates[m.Template].language
	if at == nil {
		return "", nil
	}
	data, err := decode(m.Data)
	if err != nil {
		return "", err
	}
	value, err := at.find(data)
	if err != nil {
		return "", fmt.Errorf("template %q, language (%s): %w", m.Template, strings.Join(at, "."), err)
	}
	language, isText := value.(string)
	if value != nil && !isText {
		return "", fmt.Errorf("template %q, language (%s): it is not a text", m.Template, strings.Join(at, "."))
	}
	return strings.TrimSpace(language), nil
}

func (p path) pick(data any) (string, error) {
	value, err := p.find(data)
	if err != nil {
		return "", err
	}
	s, err := text(value)
	if err == nil && strings.TrimSpace(s) == "" {
		return "", fault("the value is blank")
	}
	return s, err
}

func (p path) find(value any) (any, error) {
	for _, name := range p {
		var key any = name
		if _, isList := value.([]any); isList {
			i, err := strconv.ParseUint(name, 10, 31)
			if err != nil || strconv.FormatUint(i, 10) != name {
				return nil, fault("a list has no such position")
			}
			key = int64(i)
		}
		var err error
		if value, err = element(value, key); err != nil {
			return nil, err
		}
	}
	return value, nil
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
