package kittest

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"testing"
	"time"

	"railhead/hack/cluster/pki"
)

// webhook makes what a webhook behind a Service needs: a Secret of the
// Service's name with a certificate for it. It returns the caBundle that the
// API server is to trust.
func (c *cluster) webhook(t *testing.T, namespace, service string) (caBundle string) {
	t.Helper()
	ca, err := pki.NewAuthority(service+"-ca", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := ca.Issue(pki.ServiceLeaf(namespace, service))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	for file, content := range map[string][]byte{cert: pair.Cert, key: pair.Key} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.Kubectl(t, "create", "secret", "tls", service, "-n", namespace, "--cert", cert, "--key", key)
	return base64.StdEncoding.EncodeToString(ca.Cert)
}
