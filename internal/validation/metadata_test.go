package validation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestReviewMeta has what the API server refuses of names.
func TestReviewMeta(t *testing.T) {
	t.Parallel()
	const (
		onePool = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata: %s\nspec: {subnet: 10.0.0.0/24}\n"
		network = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderMultusConfig\nmetadata: %s\nspec: {cniType: macvlan, macvlan: {master: [eth1]}}\n"
	)
	for _, tt := range []struct {
		document, metadata string
		want               []string // paths of errors
	}{
		{onePool, "{name: a.b-c}", nil},
		{onePool, "{name: Bad_Name}", []string{"metadata.name"}},
		{onePool, "{}", []string{"metadata.name"}},
		{onePool, "{name: 5}", []string{"metadata.name"}},
		{onePool, "{generateName: a-}", nil},
		{onePool, "{generateName: Bad_name-}", []string{"metadata.generateName"}},
		{onePool, "{name: a, namespace: No_Matter}", nil},
		{onePool, "{name: a, labels: {a b: c}}", []string{"metadata.labels"}},
		{onePool, "{name: a, labels: {a b: 1}}", []string{"metadata.labels[a b]"}},
		{network, "{name: a}", nil},
		{network, "{name: a, namespace: a.b}", []string{"metadata.namespace"}},
	} {
		t.Run(tt.metadata, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, e := range reviewTexts(fmt.Sprintf(tt.document, tt.metadata)).Objects[0].Errors {
				got = append(got, e.Path)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReviewGenerated has two objects whose names the cluster makes: they are two.
func TestReviewGenerated(t *testing.T) {
	t.Parallel()
	const text = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: SpiderIPPool\nmetadata: {generateName: a-}\nspec: {subnet: 10.%d.0.0/24, gateway: %s}\n"
	r := reviewTexts(fmt.Sprintf(text, 1, "10.1.0.1") + "---\n" + fmt.Sprintf(text, 2, "10.1.0.1"))
	if !r.Objects[0].Accepted || len(r.Objects[1].Errors) != 1 || r.Objects[1].Errors[0].Path != "spec.gateway" {
		t.Errorf("want the gateway of the second refused: %+v", r.Objects)
	}
}

// TestReviewTemplate has templates that nobody rendered.
func TestReviewTemplate(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"{{- if .Values.a }}\nkind: x\n{{- end }}\n", "kind: x\nspec:\n  subnet: {{ .Values.subnet }}\n"} {
		if o := reviewTexts(text).Objects[0]; !o.NoObject || !strings.HasPrefix(o.Errors[0].Text, "looks like a Helm template") {
			t.Errorf("of %q it says %+v", text, o)
		}
	}
	if o := reviewTexts("\x7fELF\x00{{").Objects[0]; !o.NoObject || strings.Contains(o.Errors[0].Text, "Helm") {
		t.Errorf("a program is taken for a template: %+v", o)
	}
	if o := reviewTexts("a: '{{'\n").Objects[0]; o.NoObject || o.Errors[0].Path != "apiVersion" {
		t.Errorf("braces in a string are taken for a template: %+v", o)
	}
}
