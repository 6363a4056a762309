package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func good() Options {
	return Options{Config: &rest.Config{}, Namespace: "railhead-system", WebhookListen: ":5722"}
}

// TestDefaults wants what is not said filled in.
func TestDefaults(t *testing.T) {
	t.Parallel()
	o := good()
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"spiderpool-conf", "spiderpool-config"}, o.ConfigMapNames); diff != "" {
		t.Errorf("ConfigMaps (-want +got):\n%s", diff)
	}
	if o.Service != "railhead-controller" || o.LeaseDuration != 15*time.Second || o.RenewDeadline != 10*time.Second || o.RetryPeriod != 2*time.Second {
		t.Errorf("options %+v", o)
	}
}

// TestURL wants a slash at the end to make no second one before a path, which
// the server would answer with a redirect that no API server follows.
func TestURL(t *testing.T) {
	t.Parallel()
	o := good()
	o.WebhookURL = "https://10.0.0.1:5722/"
	if err := o.complete(); err != nil || o.WebhookURL != "https://10.0.0.1:5722" {
		t.Errorf("URL %q, error %v", o.WebhookURL, err)
	}
}

// TestBadOptions wants each named with its value and what would be accepted.
func TestBadOptions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		edit func(*Options)
		want []string
	}{
		{"no access", func(o *Options) { o.Config = nil }, []string{"no access to Kubernetes"}},
		{"namespace", func(o *Options) { o.Namespace = "" }, []string{`namespace ""`, "lower-case"}},
		{"ConfigMap", func(o *Options) { o.ConfigMapNames = []string{"Conf"} }, []string{`ConfigMap "Conf"`}},
		{"Service", func(o *Options) { o.Service = "a.b" }, []string{`Service "a.b"`}},
		{"webhooks", func(o *Options) { o.WebhookListen = "" }, []string{`webhooks ""`, "host:port"}},
		{"metrics", func(o *Options) { o.MetricsListen = "5721" }, []string{`metrics "5721"`}},
		{"health", func(o *Options) { o.HealthListen = "x" }, []string{`health "x"`}},
		{"URL", func(o *Options) { o.WebhookURL = "http://10.0.0.1" }, []string{`"http://10.0.0.1"`, `"https://host:port"`}},
		{"URL with a path", func(o *Options) { o.WebhookURL = "https://10.0.0.1/x" }, []string{"https://10.0.0.1/x"}},
		{"URL without a host", func(o *Options) { o.WebhookURL = "https://:5722" }, []string{"https://:5722"}},
		{"URL with a fragment", func(o *Options) { o.WebhookURL = "https://10.0.0.1#x" }, []string{"https://10.0.0.1#x"}},
		{"lease", func(o *Options) { o.LeaseDuration = 5 * time.Second }, []string{"lease duration 5s", "10s"}},
		{"renew", func(o *Options) { o.RenewDeadline = 2 * time.Second }, []string{"renew deadline 2s", "2s"}},
		{"retry", func(o *Options) { o.RetryPeriod = -time.Second }, []string{"retry period -1s"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := good()
			tt.edit(&o)
			err := o.complete()
			if err == nil {
				t.Fatal("it is accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}
