package plantillas

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
)

// fault is why data does not fit a template. Its text never holds data.
type fault string

func (f fault) Error() string { return string(f) }

// number is a number that an int64 cannot hold, in digits.
type number string

// maxExponent is the greatest that outbox.Message.Data may have: jsonb holds no more.
const maxExponent = 16000

// decode gives a row's data as nil, bool, string, int64, number, []any and map[string]any. No data is an empty object.
func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return map[string]any{}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var data any
	if err := decoder.Decode(&data); err != nil {
		return nil, fault("the data is not JSON")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fault("the data is more than one JSON value")
	}
	return withNumbers(data)
}

// withNumbers replaces each json.Number in data, in place.
func withNumbers(data any) (any, error) {
	var err error
	switch data := data.(type) {
	case json.Number:
		return readNumber(string(data))
	case []any:
		for i := range data {
			if data[i], err = withNumbers(data[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for key := range data {
			if data[key], err = withNumbers(data[key]); err != nil {
				return nil, err
			}
		}
	}
	return data, nil
}

// readNumber gives a JSON number as int64 or number.
func readNumber(s string) (any, error) {
	digits, err := withoutExponent(s)
	if err != nil {
		return nil, err
	}
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return n, nil
	}
	return number(digits), nil
}

// withoutExponent writes a JSON number as numeric does: -1.50e1 is -15.0, and 0 has no sign.
func withoutExponent(s string) (string, error) {
	sign, s := "", s
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		sign, s = "-", rest
	}
	mantissa, exponent := s, 0
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		mantissa = s[:e]
		var err error
		if exponent, err = strconv.Atoi(s[e+1:]); err != nil || max(exponent, -exponent) > maxExponent {
			return "", fault("the data has a number beyond 16000 digits")
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exponent
	if strings.Trim(digits, "0") == "" {
		sign = ""
	}
	switch {
	case point <= 0:
		digits, point = strings.Repeat("0", 1-point)+digits, 1
	case point > len(digits):
		digits += strings.Repeat("0", point-len(digits))
	}
	whole = strings.TrimLeft(digits[:point-1], "0") + digits[point-1:point]
	if point == len(digits) {
		return sign + whole, nil
	}
	return sign + whole + "." + digits[point:], nil
}

// text gives a value as it is printed.
func text(value any) (string, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case int64:
		return strconv.FormatInt(value, 10), nil
	case number:
		return string(value), nil
	case bool:
		return strconv.FormatBool(value), nil
	case int: // a position in a list, or a number in the template
		return strconv.Itoa(value), nil
	case float64: // a number in the template
		return strconv.FormatFloat(value, 'f', -1, 64), nil
	case nil:
		return "", fault("null is printed here")
	}
	return "", fault("a list or an object is printed here")
}

// element gives what an object has under a key, or a list at a position.
func element(value, key any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		name, ok := key.(string)
		if !ok {
			return nil, fault("a key of an object must be a text")
		}
		v, found := value[name]
		if !found {
			return nil, fault("a key is missing here")
		}
		return v, nil
	case []any:
		i, ok := position(key)
		if !ok || i < 0 || i >= int64(len(value)) {
			return nil, fault("a list has no such position")
		}
		return value[i], nil
	}
	return nil, fault("only a list or an object has elements")
}

func position(key any) (i int64, ok bool) {
	switch key := key.(type) {
	case int:
		return int64(key), true
	case int64:
		return key, true
	}
	return 0, false
}
