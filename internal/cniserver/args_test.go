package cniserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"railhead/internal/cnicall"
)

func TestArgs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text  string
		want  podArgs
		err   string
		named string // error of named
	}{
		{"IgnoreUnknown=1;K8S_POD_NAMESPACE=ai;K8S_POD_NAME=train;K8S_POD_INFRA_CONTAINER_ID=box1;K8S_POD_UID=u", podArgs{"ai", "train", "u", "box1"}, "", ""},
		{"K8S_POD_NAMESPACE=ai;K8S_POD_NAME=train;", podArgs{namespace: "ai", name: "train"}, "", ""},
		{"K8S_POD_NAME=a=b", podArgs{name: "a=b"}, "", "K8S_POD_NAMESPACE: missing"},
		{"", podArgs{}, "", "K8S_POD_NAMESPACE, K8S_POD_NAME: missing"},
		{"K8S_POD_NAME", podArgs{}, `CNI_ARGS: "K8S_POD_NAME": want KEY=value`, "missing"},
	} {
		got, err := parseArgs(tt.text)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(podArgs{})); diff != "" {
			t.Errorf("%q: -want +got:\n%s", tt.text, diff)
		}
		checkWords(t, tt.text, err, tt.err)
		checkWords(t, tt.text, got.named(), tt.named)
	}
}

func checkWords(t *testing.T, what string, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case words != "" && (err == nil || !strings.Contains(err.Error(), words)):
		t.Errorf("%s: error %v, want %q in it", what, err, words)
	case words != "" && codeOf(err) != cnicall.CodeEnvironment:
		t.Errorf("%s: code %d, want %d", what, codeOf(err), cnicall.CodeEnvironment)
	}
}

// FuzzArgs: what is read was there.
func FuzzArgs(f *testing.F) {
	f.Add("IgnoreUnknown=1;K8S_POD_NAMESPACE=ai;K8S_POD_NAME=train")
	f.Add("K8S_POD_UID==;;=")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseArgs(text)
		if err != nil {
			return
		}
		for key, value := range map[string]string{"K8S_POD_NAMESPACE": p.namespace, "K8S_POD_NAME": p.name, "K8S_POD_UID": p.uid, "K8S_POD_INFRA_CONTAINER_ID": p.sandbox} {
			if value != "" && !strings.Contains(text, key+"="+value) {
				t.Errorf("%q: %s is %q", text, key, value)
			}
		}
	})
}

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := parse(cnicall.Request{Command: cnicall.Add, Config: json.RawMessage(
		`{"cniVersion":"1.0.0","name":"railhead","type":"railhead-cni","clusterNetwork":{"file":"f","name":"n"},"runtimeConfig":{"portMappings":[1]},"cni.dev/attachments":[]}`)})
	if err != nil || c.Plugin != ownPlugin || c.conf.ClusterNetwork != (clusterNetwork{"f", "n"}) || string(c.conf.RuntimeConfig["portMappings"]) != "[1]" {
		t.Errorf("%+v, %v", c, err)
	}
	if valid, err := c.valid(); err != nil || valid == nil {
		t.Errorf("valid attachments %v, %v, want none and no error", valid, err)
	}
	if _, err := parse(cnicall.Request{Config: json.RawMessage(`{`)}); codeOf(err) != cnicall.CodeDecode {
		t.Errorf("broken configuration: %v, code %d", err, codeOf(err))
	}
	if _, err := parse(cnicall.Request{Command: cnicall.Del, Args: "broken"}); err != nil {
		t.Errorf("DEL with broken CNI_ARGS: %v, want none: it needs them not", err)
	}
}
