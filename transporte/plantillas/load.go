package plantillas

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/mafesoftware/outbox-relay/outbox"
)

// The endings of file names. A subject and a list of paths also end like a text, so they are looked for first.
const (
	subjectEnding  = ".asunto.txt"
	whatsappEnding = ".whatsapp.txt"
	htmlEnding     = ".html"
	textEnding     = ".txt"
)

// validName leaves out what is special to a folder or a shell. A name that begins with "_" is for use in other templates.
var validName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// Load reads and parses the files of a folder: os.DirFS("plantillas"), or fs.Sub(files, "plantillas") of files embedded by
// "//go:embed plantillas/*" (without the star Go leaves out those that begin with "_"). Files whose name begins with a
// point are left alone; any other must be a template, and there are no folders within the folder.
//
// What is wrong with the files gives one error that wraps outbox.ErrInvalidOptions, with a line for each fault: file, line
// in the file, reason. A file that cannot be read gives the error of fsys.
func Load(fsys fs.FS) (*Set, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	l := newLoader()
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") { // of the system or an editor, such as ..data of a Kubernetes volume
			continue
		}
		f, err := newFile(entry.Name())
		if err != nil {
			l.fault(f.name, 0, err.Error())
			continue
		}
		source, err := fs.ReadFile(fsys, f.name)
		if err != nil {
			return nil, fmt.Errorf("read templates: %w", err)
		}
		l.add(f.with(string(source)))
	}
	l.finish()
	if len(l.faults) > 0 {
		return nil, fmt.Errorf("%w: templates:\n%w", outbox.ErrInvalidOptions, errors.Join(l.faults...))
	}
	return &l.set, nil
}

// file is one file of a folder.
type file struct {
	name     string // turno.asunto.txt
	template string // turno
	ending   string // .asunto.txt
	source   string
}

func newFile(name string) (file, error) {
	for _, ending := range []string{subjectEnding, whatsappEnding, htmlEnding, textEnding} {
		template, ok := strings.CutSuffix(name, ending)
		if !ok {
			continue
		}
		f := file{name: name, template: template, ending: ending}
		if !validName.MatchString(template) || f.partial() && ending != htmlEnding && ending != textEnding {
			break
		}
		return f, nil
	}
	return file{name: name}, errors.New("is not a template: those are NAME.asunto.txt, NAME.html, NAME.txt, NAME.whatsapp.txt, " +
		"_NAME.html and _NAME.txt, where NAME is letters a to z, digits, hyphens, underscores and points")
}

// partial tells whether f is no template of its own, but for use in others.
func (f file) partial() bool { return strings.HasPrefix(f.template, "_") }

// with gives f with its source. A mark at its beginning, which some editors write, is not part of it; neither are the
// line breaks at the end of a subject or a partial.
func (f file) with(source string) file {
	f.source = strings.TrimPrefix(source, "\ufeff")
	if f.ending == subjectEnding || f.partial() {
		f.source = strings.TrimRight(f.source, "\r\n")
	}
	return f
}

// line gives the number of the line at an offset in f.source.
func (f file) line(offset int) int { return 1 + strings.Count(f.source[:offset], "\n") }

// notUTF8 gives the offset of the first byte that is not UTF-8, or -1.
func (f file) notUTF8() int {
	for i, r := range f.source {
		if r == utf8.RuneError && !strings.HasPrefix(f.source[i:], string(utf8.RuneError)) {
			return i
		}
	}
	return -1
}
