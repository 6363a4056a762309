package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// answers are an API server's, by the last two parts of the path.
type answers map[string][]any

// RoundTrip answers a question with the next of its answers, and again and again
// with the last: an object, or a status.
func (a answers) RoundTrip(request *http.Request) (*http.Response, error) {
	dir, name := path.Split(request.URL.Path)
	key := strings.Replace(path.Base(dir), "/", "api", 1) + "/" + name
	all := a[key]
	if len(all) == 0 {
		return nil, errors.New("nobody answers " + key)
	}
	if len(all) > 1 {
		a[key] = all[1:]
	}
	code := http.StatusOK
	if status, ok := all[0].(metav1.Status); ok {
		code = int(status.Code)
	}
	text, err := json.Marshal(all[0])
	return &http.Response{
		StatusCode: code, Request: request, Body: io.NopCloser(strings.NewReader(string(text))),
		Header: http.Header{"Content-Type": {"application/json"}},
	}, err
}

func refusal(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: code, Reason: reason}
}

func object(meta metav1.ObjectMeta) metav1.PartialObjectMetadata {
	return metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}, ObjectMeta: meta}
}

func TestUninstalled(t *testing.T) {
	t.Parallel()
	isController := true
	pod := object(metav1.ObjectMeta{Name: "agent-1", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "1", Controller: &isController},
	}})
	alone := object(metav1.ObjectMeta{Name: "agent-1"})
	now := metav1.Now()
	gone := refusal(http.StatusNotFound, metav1.StatusReasonNotFound)
	forbidden := refusal(http.StatusForbidden, metav1.StatusReasonForbidden)
	unauthorized := refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
	for _, test := range []struct {
		name string
		api  answers
		want string // of the error
	}{
		{"its DaemonSet is gone", answers{"pods/agent-1": {pod}, "daemonsets/agent": {gone}}, ""},
		{"it is being deleted", answers{"pods/agent-1": {pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "1", DeletionTimestamp: &now})}}, ""},
		{"it is there", answers{"pods/agent-1": {pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "1"})}}, "is there"},
		{"another one has its name", answers{"pods/agent-1": {pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "2", DeletionTimestamp: &now})}}, "is there"},
		{"the pod is of no DaemonSet", answers{"pods/agent-1": {alone}}, "of no DaemonSet"},
		{"the pod is gone", answers{"pods/agent-1": {gone}}, "is gone"},
		{"its rights are gone", answers{"pods/agent-1": {forbidden, unauthorized}, "api/readyz": {metav1.Status{Code: http.StatusOK}}}, ""},
		{"the API server is starting", answers{"pods/agent-1": {forbidden}, "api/readyz": {metav1.Status{Code: http.StatusInternalServerError}}}, "deadline"},
		{"its rights are replaced", answers{"pods/agent-1": {forbidden, forbidden, pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "1"})}}, "is there"},
		{"nobody answers", answers{}, "nobody answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := networking{config: Config{
					Namespace: "railhead-system", CNI: &CNI{Pod: "agent-1"},
					Kubernetes: &rest.Config{Host: "http://api", Transport: test.api},
				}}
				ctx, cancel := context.WithTimeout(t.Context(), uninstallLimit)
				defer cancel()
				err := r.uninstalled(ctx)
				switch {
				case test.want == "" && err != nil:
					t.Errorf("got %v, want none", err)
				case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
					t.Errorf("got %v, want one with %q", err, test.want)
				}
			})
		})
	}
}
