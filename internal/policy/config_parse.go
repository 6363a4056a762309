package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// ConfigOf reads the data of the ConfigMap.
func ConfigOf(data map[string]string) (Config, error) {
	text, ok := data[ConfigMapKey]
	if !ok {
		return Config{}, errors.New("data has no key " + ConfigMapKey)
	}
	config, err := ParseConfig([]byte(text))
	if err != nil {
		return Config{}, fmt.Errorf("data[%s]: %w", ConfigMapKey, err)
	}
	return config, nil
}

// ParseConfig reads the key conf.yml of the ConfigMap, YAML or JSON. All keys
// that are unknown are named in one error, with the values of the wrong type;
// the rules about values are asked where there are none. The Config is usable
// only without an error. Callers say where the text is from.
func ParseConfig(data []byte) (Config, error) {
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Config{}, err
	}
	var written any
	if err := json.Unmarshal(document, &written); err != nil {
		return Config{}, err
	}
	if _, keys := written.(map[string]any); !keys && written != nil {
		return Config{}, fmt.Errorf("want keys and values, such as %q", "enableIPv6: true")
	}
	if errs := misfits(nil, written, reflect.TypeFor[Config]()); len(errs) > 0 {
		return Config{}, errs.ToAggregate()
	}
	config := DefaultConfig()
	if err := json.Unmarshal(document, &config); err != nil {
		return Config{}, err
	}
	if errs := config.review(); len(errs) > 0 {
		return Config{}, errs.ToAggregate()
	}
	// Applications' own pools are cut from SpiderSubnets.
	config.EnableAutoPool = config.EnableAutoPool && config.EnableSpiderSubnet
	return config, nil
}

// misfits finds what a type has no place for, in order: keys without a field,
// and values of another type.
func misfits(path *field.Path, written any, t reflect.Type) field.ErrorList {
	if want := wanted(written, t); want != "" {
		return field.ErrorList{field.Invalid(path, written, "want "+want)}
	}
	keys, ok := written.(map[string]any)
	if !ok || t.Kind() != reflect.Struct {
		return nil
	}
	var errs field.ErrorList
	known := map[string]reflect.Type{}
	for f := range t.Fields() {
		known[f.Tag.Get("json")] = f.Type
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if inner, ok := known[key]; ok {
			errs = append(errs, misfits(path.Child(key), keys[key], inner)...)
			continue
		}
		errs = append(errs, field.Forbidden(path.Child(key), "unknown key: "+Suggestion(key, slices.Sorted(maps.Keys(known)))))
	}
	return errs
}

// wanted says what a value of a type would be, "" if what is written is one.
// null is one of every type: as if the key were left out.
func wanted(written any, t reflect.Type) string {
	if written == nil {
		return ""
	}
	var (
		want string
		fits bool
	)
	switch t.Kind() {
	case reflect.Bool:
		want = "true or false"
		_, fits = written.(bool)
	case reflect.Int:
		want = "a whole number"
		n, isNumber := written.(float64)
		fits = isNumber && n == math.Trunc(n) && math.Abs(n) <= math.MaxInt32
	case reflect.String:
		want = "text, in quotes where it looks like something else"
		_, fits = written.(string)
	case reflect.Slice:
		want = "a list of texts, such as [a, b]"
		list, isList := written.([]any)
		fits = isList && !slices.ContainsFunc(list, func(item any) bool { return wanted(item, t.Elem()) != "" })
	default:
		want = "keys and values"
		_, fits = written.(map[string]any)
	}
	if fits {
		return ""
	}
	return want
}

// Suggestion is the known name with the fewest changes from a name, or all of
// them if none is near.
func Suggestion(name string, known []string) string {
	nearest := Nearest(name, known)[0]
	if isNear(name, nearest) {
		return fmt.Sprintf("did you mean %q?", nearest)
	}
	return "want one of " + strings.Join(known, ", ")
}

// review has the rules about values.
func (c Config) review() field.ErrorList {
	var r Review
	if !c.EnableIPv4 && !c.EnableIPv6 {
		r.refuse(field.NewPath("enableIPv6"), false, "no family is left: want enableIPv4 or enableIPv6 true")
	}
	if c.ClusterSubnetDefaultFlexibleIPNumber < 0 {
		r.refuse(field.NewPath("clusterSubnetDefaultFlexibleIPNumber"), c.ClusterSubnetDefaultFlexibleIPNumber, "want 0 or more addresses")
	}
	inject := field.NewPath("podResourceInject")
	r.namespaces(inject.Child("namespacesExclude"), c.PodResourceInject.NamespacesExclude)
	r.namespaces(inject.Child("namespacesInclude"), c.PodResourceInject.NamespacesInclude)
	timeout := c.IAASNetwork.HTTPRequestTimeout
	if d, err := time.ParseDuration(timeout); timeout != "" && (err != nil || d <= 0) {
		r.refuse(field.NewPath("iaasNetworkProvider", "httpRequestTimeout"), timeout, `want a duration such as "50s"`)
	}
	return r.Errors
}

// namespaces checks names of namespaces.
func (r *Review) namespaces(path *field.Path, names []string) {
	r.names(path, names, "the name of a namespace", validation.IsDNS1123Label)
}
