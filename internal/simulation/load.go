package simulation

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// Load reads a scenario from a YAML file and checks it. The error names each
// field that is wrong by its path, its value and what would be accepted.
func Load(file string) (*Scenario, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	s, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

// parse reads a scenario, fills in what it does not say, and checks it.
func parse(text []byte) (*Scenario, error) {
	if bytes.Contains(bytes.TrimPrefix(text, []byte("---")), []byte("\n---")) {
		return nil, errors.New("there is a second document after ---: want one scenario a file")
	}
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	s := &Scenario{}
	strict, err := json.UnmarshalStrict(document, s)
	if err != nil {
		return nil, err
	}
	if len(strict) > 0 {
		return nil, errors.Join(strict...)
	}
	if err := refused(reflect.ValueOf(s), ""); err != nil {
		return nil, err
	}
	s.complete()
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// refused returns the errors of all durations and quantities that are none.
func refused(v reflect.Value, path string) error {
	if bad, ok := v.Interface().(interface{ invalid() string }); ok {
		if v.Kind() == reflect.Pointer && v.IsNil() {
			return nil
		}
		if problem := bad.invalid(); problem != "" {
			return fmt.Errorf("%s: %s", path, problem)
		}
		return nil
	}
	var errs []error
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return refused(v.Elem(), path)
		}
	case reflect.Slice:
		for i := range v.Len() {
			errs = append(errs, refused(v.Index(i), fmt.Sprintf("%s[%d]", path, i)))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			errs = append(errs, refused(v.Field(i), strings.TrimPrefix(join(path, name), ".")))
		}
	}
	return errors.Join(errs...)
}

// join adds a field to a path; that of an embedded struct has no name.
func join(path, name string) string {
	if name == "" {
		return path
	}
	return path + "." + name
}
