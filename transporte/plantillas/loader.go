package plantillas

import (
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io"
	"maps"
	"slices"
	"strings"
	texttemplate "text/template"
	"text/template/parse"
)

// loader gathers files, and all their faults instead of only the first.
type loader struct {
	set   Set
	files map[string]map[string]file // by template and ending, without partials
	// text and html hold what {{template}} finds: all files of that ending, and what they define.
	text   *texttemplate.Template
	html   *htmltemplate.Template
	calls  []call // of {{template}}
	faults []error
}

// call is a {{template}} in a file.
type call struct {
	from file
	line int
	name string
}

func newLoader() *loader {
	return &loader{
		set:   Set{map[string]email{}, Parameters{map[string]places{}}},
		files: map[string]map[string]file{},
		text:  texttemplate.New("").Option("missingkey=error").Funcs(functions()),
		html:  htmltemplate.New("").Option("missingkey=error").Funcs(functions()),
	}
}

func (l *loader) fault(file string, line int, reason string) {
	if line > 0 {
		file = fmt.Sprintf("%s:%d", file, line)
	}
	l.faults = append(l.faults, errors.New(file+": "+reason))
}

func (l *loader) add(f file) {
	if !f.partial() {
		if l.files[f.template] == nil {
			l.files[f.template] = map[string]file{}
		}
		l.files[f.template][f.ending] = f
	}
	if i := f.notUTF8(); i >= 0 {
		l.fault(f.name, f.line(i), "is not UTF-8: save it with that encoding")
		return
	}
	switch {
	case f.ending == whatsappEnding:
		l.addPaths(f)
	case strings.TrimSpace(f.source) == "":
		l.fault(f.name, 1, "is empty")
	default:
		l.addTemplates(f)
	}
}

// addPaths reads one path from each line that is neither blank nor a comment.
func (l *loader) addPaths(f file) {
	var t places
	line := 0
	for s := range strings.Lines(f.source) {
		line++
		s = strings.TrimSpace(s)
		if s == "" || strings.HasPrefix(s, "#") {
			continue
		}
		if err := t.add(s); err != nil {
			l.fault(f.name, line, err.Error())
		}
	}
	l.set.parameters.templates[f.template] = t
}

// addTemplates parses f and what it defines.
func (l *loader) addTemplates(f file) {
	trees, err := parse.Parse(f.name, f.source, "", "", known(f.ending))
	if err != nil {
		l.faults = append(l.faults, errors.New(strings.TrimPrefix(err.Error(), "template: ")))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[name]
		if l.has(f.ending, name) {
			l.fault(f.name, f.line(int(tree.Root.Pos)), fmt.Sprintf("defines %q, which another file defines too", name))
			continue
		}
		walk(tree.Root, func(n parse.Node) { l.look(f, n) })
		walk(tree.Root, strict)
		if f.ending == htmlEnding {
			_, err = l.html.AddParseTree(name, tree)
		} else {
			_, err = l.text.AddParseTree(name, tree)
		}
		if err != nil {
			l.fault(f.name, 0, err.Error())
		}
	}
}

func (l *loader) has(ending, name string) bool {
	if ending == htmlEnding {
		return l.html.Lookup(name) != nil
	}
	return l.text.Lookup(name) != nil
}

// look finds what is wrong with a node, or may be.
func (l *loader) look(f file, n parse.Node) {
	switch n := n.(type) {
	case *parse.TextNode:
		if i := strings.IndexFunc(string(n.Text), breaksLine); i >= 0 && f.ending == subjectEnding {
			l.fault(f.name, f.line(int(n.Pos)+i), "a subject is one line: {{- and -}} leave out the line break before and after")
		}
	case *parse.TemplateNode:
		l.calls = append(l.calls, call{f, n.Line, n.Name})
	}
}

// finish checks what needs all files, and makes the emails.
func (l *loader) finish() {
	names := slices.Sorted(maps.Keys(l.files))
	for _, c := range l.calls {
		if !l.has(c.from.ending, c.name) {
			l.fault(c.from.name, c.line, fmt.Sprintf("there is no %q: a template can use those of files with the same ending", c.name))
		}
	}
	for _, name := range names {
		l.checkEmail(name)
	}
	if len(names) == 0 && len(l.faults) == 0 {
		l.fault(".", 0, "has no templates: is it the right folder, and an embedded one without its path (fs.Sub)?")
	}
	if len(l.faults) > 0 {
		return
	}
	for _, name := range names {
		l.addEmail(name)
	}
}

func (l *loader) checkEmail(name string) {
	_, hasSubject := l.files[name][subjectEnding]
	_, hasHTML := l.files[name][htmlEnding]
	_, hasText := l.files[name][textEnding]
	switch hasBody := hasHTML || hasText; {
	case hasBody && !hasSubject:
		l.fault(name+subjectEnding, 0, "is missing: an email needs a subject")
	case hasSubject && !hasBody:
		l.fault(name+htmlEnding, 0, "is missing, and "+name+textEnding+" too: an email needs one of them")
	}
}

func (l *loader) addEmail(name string) {
	subject, isEmail := l.files[name][subjectEnding]
	if !isEmail {
		return // it is for WhatsApp
	}
	e := email{subject: l.text.Lookup(subject.name)}
	if f, ok := l.files[name][htmlEnding]; ok {
		l.escape(f)
		e.html = l.html.Lookup(f.name)
	}
	if f, ok := l.files[name][textEnding]; ok {
		e.text = l.text.Lookup(f.name)
	}
	l.set.emails[name] = e
}

// escape lets html/template find out in which context f has its values, which it does once, and before it executes.
func (l *loader) escape(f file) {
	err := l.html.ExecuteTemplate(io.Discard, f.name, nil)
	var executed texttemplate.ExecError // without data it fails; what matters is that it came so far
	if err == nil || errors.As(err, &executed) {
		return
	}
	var e *htmltemplate.Error
	if errors.As(err, &e) && e.ErrorCode == htmltemplate.ErrEndContext {
		l.fault(f.name, f.line(len(strings.TrimRight(f.source, "\r\n"))), "ends within a tag, an attribute, a script or a style")
		return
	}
	l.faults = append(l.faults, errors.New(strings.TrimPrefix(err.Error(), "html/template:")))
}
