package api

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ours are the kinds that replicas write, and users.
func ours() []schema.GroupVersionKind {
	list := []schema.GroupVersionKind{
		admissionv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"),
		admissionv1.SchemeGroupVersion.WithKind("MutatingWebhookConfiguration"),
		{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"},
		corev1.SchemeGroupVersion.WithKind("Secret"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		eventsv1.SchemeGroupVersion.WithKind("Event"),
	}
	for _, kind := range []string{"SpiderIPPool", "SpiderSubnet", "SpiderReservedIP", "SpiderEndpoint", "SpiderCoordinator", "SpiderMultusConfig"} {
		list = append(list, schema.GroupVersionKind{Group: "spiderpool.spidernet.io", Version: "v2beta1", Kind: kind})
	}
	return list
}

// all are all objects of a kind.
func (s *Server) all(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind)
	err := s.List(ctx, &list)
	return list.Items, err
}

// inventory prints what there is, without what differs from run to run.
func (s *Server) inventory(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	names := map[string]string{}
	for _, kind := range ours() {
		if kind.Kind == "Event" {
			continue // the end of a controller may keep one back
		}
		list, err := s.all(t.Context(), kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list {
			names[string(o.GetUID())] = "the UID of " + o.GetName()
			names[lastOf(string(o.GetUID()), 5)] = "UID"
			text.WriteString("---\n")
			text.WriteString(document(t, bare(&o)))
		}
	}
	return anyUID.ReplaceAllString(replaceAll(text.String(), names), "a UID")
}

// anyUID is that of an object of another kind.
var anyUID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// lastOf is the end of a text.
func lastOf(text string, n int) string { return text[len(text)-n:] }

// replaceAll replaces the longest texts first.
func replaceAll(text string, names map[string]string) string {
	keys := sortedKeys(names)
	slices.SortStableFunc(keys, func(a, b string) int { return len(b) - len(a) })
	for _, key := range keys {
		text = strings.ReplaceAll(text, key, names[key])
	}
	return text
}

// bare is an object without times, versions, keys and addresses.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"} {
		unstructured.RemoveNestedField(o.Object, "metadata", name)
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		delete(c.(map[string]any), "lastTransitionTime")
	}
	if len(conditions) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions")
	}
	if o.GetKind() == "Secret" {
		data, _, _ := unstructured.NestedMap(o.Object, "data")
		for key := range data {
			data[key] = "bytes"
		}
		_ = unstructured.SetNestedMap(o.Object, data, "data")
		o.SetAnnotations(nil) // times of certificates
	}
	webhooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
	for _, w := range webhooks {
		config := w.(map[string]any)["clientConfig"].(map[string]any)
		config["caBundle"] = "certificates"
		url, _ := config["url"].(string)
		config["url"] = "https://replica/" + url[strings.LastIndex(url, "/")+1:]
	}
	if len(webhooks) > 0 {
		_ = unstructured.SetNestedSlice(o.Object, webhooks, "webhooks")
	}
	return o
}
