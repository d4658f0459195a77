// Package plantillas makes emails and WhatsApp parameters out of files, so that who writes them needs no Go.
//
//	turno.asunto.txt     Tu turno de las {{.turno.hora}}        an email needs a subject
//	turno.html           <p>Hola {{.nombre}}</p>                and a body: HTML, text or both
//	turno.txt            Hola {{.nombre}}
//	turno.whatsapp.txt   nombre                                 the paths of {{1}}, {{2}}, ... in the row's data,
//	                     turno.hora                             or, of {{hora}}, "hora = turno.hora"; and with
//	                                                            "@idioma cliente.idioma" that of the language
//	_pie.html, _pie.txt  for {{template "_pie.html" .}}, in files of the same ending
//
// Load reads them once, at the start; a row's template is only looked up among their names, so it cannot reach a file. The
// same row makes the same bytes on every attempt: a template knows the row's data and nothing else, no clock, no time zone
// (times stand in the data as they are to be read) and no order of a map. Whoever writes templates reads docs/templates.md.
//
// Templates are strict. A key that is missing at any depth, and printing null, a list or an object, is an error; so is a
// loop over anything but a list, an object or null. Conditions take null for false. These functions exist: and, or, not,
// eq, ne, lt, le, gt, ge, len, index, and in text files urlquery.
//
// A number is printed as Postgres writes it in jsonb: all digits, 10.50 with its zero, never an exponent. Whole numbers of
// up to 64 bits can be compared with numbers, others cannot.
package plantillas

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/mafesoftware/outbox-relay/transporte"
)

// Set is the templates of one folder. Several goroutines may use it at once.
type Set struct {
	emails     map[string]email
	parameters Parameters
}

// email has a subject and at least one body; the other may be nil.
type email struct{ subject, html, text executor }

// executor is a template of text/template or html/template.
type executor interface {
	Execute(w io.Writer, data any) error
}

// Email renders the email template m.Template with m.Data; it is what transporte.NewCorreo takes. A template that is
// unknown, data that is not JSON or lacks what the template asks for, a line break in the subject, and a value that is
// unsafe where the HTML has it (a link to javascript:, for example) are errors. They say where in which file, and never
// what the data holds.
func (s *Set) Email(m transporte.Message) (transporte.Rendered, error) {
	e, ok := s.emails[m.Template]
	if !ok {
		return transporte.Rendered{}, fmt.Errorf("no email template has the name %q", m.Template)
	}
	data, err := decode(m.Data)
	if err != nil {
		return transporte.Rendered{}, err
	}
	r, err := e.render(data)
	if err != nil {
		return transporte.Rendered{}, err
	}
	switch {
	case strings.ContainsFunc(r.Subject, breaksLine):
		return transporte.Rendered{}, fmt.Errorf("the subject of %q has a line break or a NUL", m.Template)
	case strings.Contains(r.HTML, untrusted):
		return transporte.Rendered{}, fmt.Errorf("the HTML of %q gets a value that is unsafe in its place", m.Template)
	}
	return r, nil
}

// untrusted is what html/template writes in place of a value that it does not trust, without an error.
const untrusted = "ZgotmplZ"

// WhatsApp gives what transporte.NewWhatsApp takes: Parameters, their names, and Language.
func (s *Set) WhatsApp() transporte.WhatsAppOptions { return s.parameters.Options() }

// Parameters picks the WhatsApp parameters of the template m.Template out of m.Data, as Parameters.Pick does; it is what
// transporte.WhatsAppOptions takes.
func (s *Set) Parameters(m transporte.Message) ([]string, error) { return s.parameters.Pick(m) }

// Language picks the language of the WhatsApp template m.Template out of m.Data, as Parameters.Language does; it is what
// transporte.WhatsAppOptions takes.
func (s *Set) Language(m transporte.Message) (string, error) { return s.parameters.Language(m) }

func (e email) render(data any) (r transporte.Rendered, err error) {
	if r.Subject, err = execute(e.subject, data); err != nil {
		return r, err
	}
	if r.HTML, err = execute(e.html, data); err != nil {
		return r, err
	}
	r.Text, err = execute(e.text, data)
	return r, err
}

func execute(t executor, data any) (string, error) {
	if t == nil {
		return "", nil
	}
	var out strings.Builder
	if err := t.Execute(&out, data); err != nil {
		return "", withoutData(err)
	}
	return out.String(), nil
}

// withoutData keeps of err, which may quote the data, the place in the template and what this package says itself.
func withoutData(err error) error {
	place, _, _ := strings.Cut(err.Error(), ": executing ")
	place = strings.TrimPrefix(place, "template: ")
	var exec template.ExecError
	if !errors.As(err, &exec) {
		place = "the template"
	}
	var f fault
	if errors.As(err, &f) {
		return fmt.Errorf("%s: %w", place, f)
	}
	return fmt.Errorf("%s: the data lacks a key, or has another type there", place)
}

// breaksLine tells whether a mail program or a server might take r for the end of a line.
func breaksLine(r rune) bool { return strings.ContainsRune("\r\n\v\f\x00\u0085\u2028\u2029", r) }
