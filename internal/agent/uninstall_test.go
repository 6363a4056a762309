package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"railhead/internal/cniinstall"
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

// asOften is an answer for a number of times, and then another.
func asOften(times int, answer, then any) []any {
	return append(slices.Repeat([]any{answer}, times), then)
}

// TestUninstalled tells an agent whose DaemonSet is gone from one that is restarted,
// also where somebody else takes its rights or its account away and gives it others.
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
	there, ready := object(metav1.ObjectMeta{UID: "1"}), []any{metav1.Status{Code: http.StatusOK}}
	const home = "namespaces/railhead-system"
	for _, test := range []struct {
		name string
		api  answers
		want string // of the error
	}{
		{"its DaemonSet is gone", answers{"pods/agent-1": {pod}, "daemonsets/agent": {gone}}, ""},
		{"it is being deleted", answers{"pods/agent-1": {pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "1", DeletionTimestamp: &now})}}, ""},
		{"it is there", answers{"pods/agent-1": {pod}, "daemonsets/agent": {there}}, "is there"},
		{"another one has its name", answers{"pods/agent-1": {pod}, "daemonsets/agent": {object(metav1.ObjectMeta{UID: "2", DeletionTimestamp: &now})}}, "is there"},
		{"the pod is of no DaemonSet", answers{"pods/agent-1": {alone}}, "of no DaemonSet"},
		{"the pod is gone", answers{"pods/agent-1": {gone}}, "is gone"},
		{"its namespace is being deleted", answers{home: {object(metav1.ObjectMeta{DeletionTimestamp: &now})}}, ""},
		{"its namespace is not there", answers{home: {gone}}, "no namespace"},
		{"it may not ask for its namespace", answers{home: {forbidden}, "pods/agent-1": {pod}, "daemonsets/agent": {gone}}, ""},
		{"its account is gone", answers{home: {unauthorized}, "api/readyz": ready}, ""},
		{"its account is gone, and the API server still knows it", answers{home: asOften(10, forbidden, unauthorized), "pods/agent-1": {forbidden}, "api/readyz": ready}, ""},
		{"its account is replaced", answers{home: asOften(5, unauthorized, object(metav1.ObjectMeta{})), "pods/agent-1": {pod}, "daemonsets/agent": {there}, "api/readyz": ready}, "is there"},
		{"its rights are gone, and its account is there", answers{home: {forbidden}, "pods/agent-1": {forbidden}, "api/readyz": ready}, "its service account is not"},
		{"its rights are replaced", answers{home: asOften(9, forbidden, object(metav1.ObjectMeta{})), "pods/agent-1": asOften(9, forbidden, pod), "daemonsets/agent": {there}, "api/readyz": ready}, "is there"},
		{"the API server is starting", answers{home: {unauthorized}, "api/readyz": {metav1.Status{Code: http.StatusInternalServerError}}}, "deadline"},
		{"nobody answers", answers{home: nil}, "nobody answers"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if _, said := test.api[home]; !said {
				test.api[home] = []any{object(metav1.ObjectMeta{})}
			}
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

// TestHasToken tells a token that is refused for its age from one that should be known.
func TestHasToken(t *testing.T) {
	t.Parallel()
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, test := range map[string]struct {
		text string
		want bool
	}{
		"valid":       {token(`{"exp":4102444800}`), true},
		"expired":     {token(`{"exp":1000000000}`), false},
		"without end": {token(`{}`), false},
		"no claims":   {"e30.!.c2ln", false},
		"no token":    {"secret", false},
	} {
		file := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := networking{config: Config{Kubernetes: &rest.Config{BearerTokenFile: file}}}
		if got := r.hasToken(); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
	for file, want := range map[string]bool{"": true, filepath.Join(t.TempDir(), "none"): false} {
		r := networking{config: Config{Kubernetes: &rest.Config{BearerTokenFile: file}}}
		if got := r.hasToken(); got != want {
			t.Errorf("file %q: %t, want %t", file, got, want)
		}
	}
}

// TestRemoveAgain has something keep the agent from removing its network for a while,
// or for longer than there is time.
func TestRemoveAgain(t *testing.T) {
	t.Parallel()
	for _, busy := range []time.Duration{3500 * time.Millisecond, time.Hour} {
		t.Run(busy.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			c := &CNI{BinDir: filepath.Join(dir, "bin"), ConfDir: filepath.Join(dir, "net.d")}
			network, program := filepath.Join(c.ConfDir, cniinstall.File), filepath.Join(c.BinDir, cniinstall.Program)
			err := errors.Join(os.MkdirAll(filepath.Join(network, "in the way"), 0o700), os.Mkdir(c.BinDir, 0o700), os.WriteFile(program, nil, 0o600))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), uninstallLimit)
				defer cancel()
				defer time.AfterFunc(busy, func() { _ = os.RemoveAll(network) }).Stop()
				r := networking{config: Config{CNI: c}}
				removed, err := r.remove(ctx)
				_, there := os.Stat(program)
				switch {
				case busy > uninstallLimit && (err == nil || !strings.Contains(err.Error(), network) || there != nil):
					t.Errorf("removed %q, %v, program: %v; want an error of %s, and the program there", removed, err, there, network)
				case busy < uninstallLimit && (err != nil || !slices.Equal(removed, []string{program})):
					t.Errorf("removed %q, %v, want the program, and none", removed, err)
				}
			})
		})
	}
}
