package config

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// misfit says what a value must be. Who reports it adds the value.
type misfit struct{ want string }

func (m *misfit) Error() string { return m.want }

// scalars reads single values, in the file, the environment and flags alike.
type scalars struct {
	dir string // where relative paths begin; empty means the working directory
}

func (s scalars) set(v reflect.Value, text string) error {
	switch to := v.Addr().Interface().(type) {
	case *Secret:
		secret, err := s.secret(text)
		*to = Secret(secret)
		return err
	case *DSN:
		secret, err := s.secret(text)
		*to = DSN(secret)
		return err
	case *Path:
		*to = Path(s.path(text))
		return nil
	case encoding.TextUnmarshaler:
		if err := to.UnmarshalText([]byte(text)); err != nil {
			return &misfit{err.Error()}
		}
		return nil
	}
	switch v.Kind() {
	case reflect.Pointer:
		element := reflect.New(v.Type().Elem())
		if err := s.set(element.Elem(), text); err != nil {
			return err
		}
		v.Set(element)
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return &misfit{"must be true or false"}
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int32:
		n, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			return &misfit{"must be a whole number"}
		}
		v.SetInt(n)
	case reflect.Uint16:
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return &misfit{"must be a whole number from 0 to 65535"}
		}
		v.SetUint(n)
	case reflect.Float64:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return &misfit{"must be a number"}
		}
		v.SetFloat(n)
	default:
		return fmt.Errorf("no value can be read into %s", v.Type())
	}
	return nil
}

func (s scalars) path(text string) string {
	if text == "" || filepath.IsAbs(text) || s.dir == "" {
		return text
	}
	return filepath.Join(s.dir, text)
}

// secret reads the file of file:/path. Its errors quote no secret.
func (s scalars) secret(text string) (string, error) {
	path, isFile := strings.CutPrefix(text, "file:")
	if !isFile {
		return text, nil
	}
	content, err := os.ReadFile(s.path(path))
	if err != nil {
		return "", fmt.Errorf("cannot read the secret: %w", err)
	}
	// Editors and Kubernetes leave a line break at the end, which is in no password.
	secret := strings.TrimRight(string(content), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("the secret's file %s is empty", path)
	}
	return secret, nil
}

// reference is ${NAME}, or $${ for a dollar sign and a brace.
var reference = regexp.MustCompile(`\$\$\{|\$\{[^}]*\}?`)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expand puts variables of the environment in place of ${NAME}.
func expand(text string, env func(string) (string, bool)) (string, error) {
	var faults []error
	expanded := reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$${" {
			return "${"
		}
		name := strings.TrimSuffix(strings.TrimPrefix(found, "${"), "}")
		if !variableName.MatchString(name) || !strings.HasSuffix(found, "}") {
			faults = append(faults, fmt.Errorf("%s is not a variable such as ${API_KEY}; write $${ for a dollar sign and a brace", found))
			return ""
		}
		value, ok := env(name)
		if !ok || value == "" {
			faults = append(faults, fmt.Errorf("the environment variable %s is not set", name))
		}
		return value
	})
	return expanded, errors.Join(faults...)
}
