package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"railhead/internal/golden"
	"railhead/internal/policy"
	"railhead/internal/policy/injection"
	"railhead/internal/policy/manifest"
)

// TestOfflineRefusals refuses every case without an API server, by the same
// rules, and accepts the object that each case was made of.
func TestOfflineRefusals(t *testing.T) {
	for _, set := range allRefusals(t) {
		for _, c := range set.cases {
			t.Run(strings.TrimSuffix(strings.TrimPrefix(set.file, "testdata/refused/"), ".txtar")+"/"+c.name, func(t *testing.T) {
				got := c.reviewOffline(t)
				if (got == "") != c.SchemaOnly {
					t.Fatalf("said: %q, only the schema refuses it: %v", got, c.SchemaOnly)
				}
				if golden.Update() {
					c.offline = got
				} else if diff := cmp.Diff(c.offline, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
		if golden.Update() {
			set.write(t)
		}
	}
}

// reviewOffline is what the rules say of a case, a line an error; empty if they
// accept it.
func (c *refusal) reviewOffline(t *testing.T) string {
	t.Helper()
	catalog := policy.NewCatalog()
	if c.Config != nil {
		text, err := yaml.Marshal(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		config, err := policy.ParseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		catalog.SetConfig(config)
	}
	for _, o := range c.there() {
		admitOffline(t, catalog, o)
	}
	if c.set.good.GetKind() == "Pod" {
		return injectOffline(t, catalog, c.wrong(t))
	}
	if !c.goodIsThere() {
		return lines(review(t, catalog, c.wrong(t), nil))
	}
	old := admitOffline(t, catalog, merged(t, c.set.good, map[string]any{"status": c.Status}))
	if c.Delete {
		return lines(catalog.ReviewDelete(old).Errors)
	}
	if c.Object != nil {
		return lines(review(t, catalog, c.wrong(t), nil))
	}
	return lines(review(t, catalog, c.wrong(t), old))
}

// admitOffline puts an object into the catalog that must be accepted.
func admitOffline(t *testing.T, catalog *policy.Catalog, o *unstructured.Unstructured) manifest.Object {
	t.Helper()
	if errs := review(t, catalog, o, nil); len(errs) > 0 {
		t.Fatalf("%s: %v", title(o), errs.ToAggregate())
	}
	object, _ := decode(t, o)
	catalog.Default(object)
	object.SetUID("1")
	object.SetResourceVersion("1")
	catalog.Put(object)
	return object
}

func review(t *testing.T, catalog *policy.Catalog, o *unstructured.Unstructured, old manifest.Object) field.ErrorList {
	t.Helper()
	object, errs := decode(t, o)
	if object == nil {
		return errs
	}
	rules := catalog.Default(object).Errors
	if old == nil {
		rules = append(rules, catalog.Review(object, nil).Errors...)
	} else {
		rules = append(rules, catalog.Review(object, old).Errors...)
	}
	return manifest.Beside(errs, rules)
}

func decode(t *testing.T, o *unstructured.Unstructured) (manifest.Object, field.ErrorList) {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	object, errs, err := manifest.Decode(text)
	if err != nil {
		t.Fatalf("%s: %v", title(o), err)
	}
	return object, errs
}

func injectOffline(t *testing.T, catalog *policy.Catalog, o *unstructured.Unstructured) string {
	t.Helper()
	pod := &corev1.Pod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, pod); err != nil {
		t.Fatal(err)
	}
	_, err := injection.Inject(pod, nil, catalog.NetworksFor, catalog.InjectedValues)
	var refused *field.Error
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("not a field error: %v", err)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintln(err)
}

// lines are errors, one a line.
func lines(errs field.ErrorList) string {
	var text strings.Builder
	for _, err := range errs {
		fmt.Fprintln(&text, err)
	}
	return text.String()
}

// TestOfflineGood accepts what the cases were made of.
func TestOfflineGood(t *testing.T) {
	t.Parallel()
	for _, set := range allRefusals(t) {
		t.Run(set.file, func(t *testing.T) {
			t.Parallel()
			catalog := policy.NewCatalog()
			for _, o := range set.exists {
				admitOffline(t, catalog, o)
			}
			if set.good.GetKind() == "Pod" {
				if text := injectOffline(t, catalog, set.good); text != "" {
					t.Error(text)
				}
				return
			}
			admitOffline(t, catalog, set.good)
		})
	}
}
