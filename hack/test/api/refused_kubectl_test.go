package api

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"railhead/internal/golden"
)

// TestRefused applies every case with kubectl, and wants it to be refused with
// its text and nothing to have changed.
func TestRefused(t *testing.T) {
	s := Exclusive(t)
	s.Configure(t, usual)
	s.Control(t, Replica{})
	for _, set := range allRefusals(t) {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(set.file, "testdata/refused/"), ".txtar"), func(t *testing.T) {
			for _, o := range set.exists {
				s.Make(t, o)
			}
			for _, c := range set.cases {
				t.Run(c.name, func(t *testing.T) { s.refuse(t, c) })
			}
			s.End(t, set.exists...)
			s.endDefinitions(t)
		})
		if golden.Update() {
			set.write(t)
		}
	}
}

// usual is the configuration of most tests.
const usual = "podResourceInject: {enabled: true}"

// refuse runs one case and leaves nothing of it.
func (s *Server) refuse(t *testing.T, c *refusal) {
	t.Helper()
	if c.Config != nil {
		text, err := yaml.Marshal(c.Config)
		if err != nil {
			t.Fatal(err)
		}
		s.Configure(t, string(text))
		defer s.Configure(t, usual)
	}
	defer s.undo(t, c)
	for _, o := range c.There {
		s.Make(t, &unstructured.Unstructured{Object: o})
	}
	if c.goodIsThere() {
		s.MustApply(t, document(t, c.set.good))
	}
	if c.Status != nil {
		s.setStatus(t, c.set.good, c.Status)
	}
	before := s.Lookup(t, c.set.good)
	if c.OfflineOnly {
		s.MustApply(t, document(t, c.wrong(t)))
		s.End(t, c.wrong(t))
		return
	}
	said := s.awaitRefusal(t, c)
	if !said.Failed {
		t.Fatalf("accepted: %s%s", said.Stdout, said.Stderr)
	}
	if after := s.Lookup(t, c.set.good); c.goodIsThere() && (after == nil || after.GetGeneration() != before.GetGeneration()) {
		t.Errorf("changed although refused: %s", cmp.Diff(before, after))
	}
	if golden.Update() {
		c.kubectl = said.Stderr
	} else if diff := cmp.Diff(c.kubectl, said.Stderr); diff != "" {
		t.Errorf("kubectl (-want +got):\n%s", diff)
	}
}

// undo ends what a case made, first what keeps other things.
func (s *Server) undo(t *testing.T, c *refusal) {
	t.Helper()
	if c.Status != nil {
		s.setStatus(t, c.set.good, nil)
	}
	var made []*unstructured.Unstructured
	for _, o := range c.There {
		made = append(made, &unstructured.Unstructured{Object: o})
	}
	if c.goodIsThere() {
		made = append(made, c.set.good)
	}
	s.End(t, made...)
	s.endDefinitions(t)
}

// awaitRefusal tries until a case is refused: what is there may reach the webhooks
// late. A case that is accepted is undone before it is tried again.
func (s *Server) awaitRefusal(t *testing.T, c *refusal) Said {
	t.Helper()
	wrong := document(t, c.wrong(t))
	for start := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		var said Said
		switch {
		case c.Delete:
			said = s.Kubectl(t, wrong, "delete", "--wait=false", "-f", "-")
		default:
			said = s.Apply(t, wrong)
		}
		if said.Failed || time.Since(start) > Patience || c.Delete {
			return said
		}
		if c.Update != nil {
			s.MustApply(t, document(t, c.set.good))
			continue
		}
		s.End(t, c.wrong(t))
	}
}

// setStatus replaces the status of an object.
func (s *Server) setStatus(t *testing.T, o *unstructured.Unstructured, status map[string]any) {
	t.Helper()
	Eventually(t, func() string {
		now := s.Lookup(t, o)
		if now == nil {
			return "" // it was deleted by the case
		}
		fields := status
		if status == nil {
			fields = map[string]any{"allocatedIPs": nil}
		}
		patch, err := yaml.Marshal(map[string]any{"status": fields})
		if err != nil {
			t.Fatal(err)
		}
		if patch, err = yaml.YAMLToJSON(patch); err != nil {
			t.Fatal(err)
		}
		if err := s.Client.Status().Patch(t.Context(), now, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			return fmt.Sprintf("status of %s: %v", title(o), err)
		}
		return ""
	})
}

// document is an object as YAML.
func document(t *testing.T, o *unstructured.Unstructured) string {
	t.Helper()
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
