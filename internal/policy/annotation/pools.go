package annotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/internal/policy"
)

const (
	wantChoice  = `want {"ipv4": [names], "ipv6": [names]}`
	wantChoices = `want [{"interface": "eth0", "ipv4": [names], "ipv6": [names]}, …]`
	wantNames   = `want ["name", …]`
	wantRoutes  = `want [{"dst": "10.2.0.0/16", "gw": "10.1.0.1"}, …]`
)

// decode reads JSON whose keys are all known.
func decode(path *field.Path, text, want string, into any) *field.Error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, end := d.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("there is more after it")
		}
	}
	switch {
	case err == nil:
		return nil
	case isSyntax(err):
		return field.Invalid(path, text, fmt.Sprintf("is no JSON: %s (%v)", want, err))
	}
	return field.Invalid(path, text, JSONError(err)+": "+want)
}

// isSyntax says whether an error is about a text that is no JSON at all.
func isSyntax(err error) bool {
	_, ok := errors.AsType[*json.SyntaxError](err)
	return ok || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// JSONError is an error of package json for people: without its prefix and our
// types, and with nothing that others put before it.
func JSONError(err error) string {
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if e.Field == "" {
			return "is " + jsonWord(e.Value)
		}
		return fmt.Sprintf("key %q is %s", e.Field, jsonWord(e.Value))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// jsonWord is what package json calls a value, in words of users.
func jsonWord(value string) string {
	switch value {
	case "array":
		return "a list"
	case "object":
		return "an object"
	case "bool":
		return "a boolean"
	}
	return "a " + value
}

// begins says whether the value of an annotation has the shape of another one.
func begins(text, with string) bool { return strings.HasPrefix(strings.TrimSpace(text), with) }

// PoolNames reads the value of v2beta1.AnnotationDefaultPoolsV4 and
// AnnotationDefaultPoolsV6: names of pools in the user's order, which may have
// the wildcards of path.Match.
func PoolNames(at *field.Path, text string) ([]string, field.ErrorList) {
	var names []string
	if err := decode(at, text, wantNames, &names); err != nil {
		return nil, field.ErrorList{err}
	}
	if errs := reviewEach(at, names); len(errs) > 0 {
		return nil, errs
	}
	return names, nil
}

// reviewEach checks names that may have the wildcards of path.Match.
func reviewEach(at *field.Path, names []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if _, err := path.Match(name, ""); err != nil || name == "" || strings.ContainsAny(name, "/ ") {
			errs = append(errs, field.Invalid(at.Index(i), name, "want a name, which may have the wildcards * ? [ ]"))
		}
	}
	return errs
}

func reviewPoolNumber(at *field.Path, text string) field.ErrorList {
	if _, err := policy.ParseAddressNumber(text); err != nil {
		return field.ErrorList{field.Invalid(at, text, err.Error())}
	}
	return nil
}

func reviewReclaim(at *field.Path, text string) field.ErrorList {
	if text != "true" && text != "false" {
		return field.ErrorList{field.NotSupported(at, text, []string{"false", "true"})}
	}
	return nil
}

func reviewNIC(at *field.Path, text string) field.ErrorList {
	if why := badInterface(text); why != "" {
		return field.ErrorList{field.Invalid(at, text, why)}
	}
	if text == "" {
		return field.ErrorList{field.Required(at, "the name of an interface, such as net1")}
	}
	return nil
}

func reviewValues(at *field.Path, text string) field.ErrorList {
	if len(policy.InjectValues(text)) == 0 {
		return field.ErrorList{field.Required(at, "a value that SpiderMultusConfigs carry, or several with commas")}
	}
	if strings.ContainsAny(text, `[]{}"`) {
		return field.ErrorList{field.Invalid(at, text, "is JSON: want values separated by commas")}
	}
	return nil
}
