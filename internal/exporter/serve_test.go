package exporter

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServe serves with TLS and a password, and ends when it is told.
func TestServe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	pool := writeCertificate(t, dir)
	// bcrypt of "secret" at the least cost
	config := writeFile(t, dir, "web.yaml", `
tls_server_config: {cert_file: cert.pem, key_file: key.pem}
basic_auth_users: {prometheus: "$2a$04$G/kQgombjLCTNzSG8S3ghuPdEQTioY51.ZNzJQeYoEQcHB52o3Uvy"}
`)
	listeners, err := listen(t.Context(), []string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve(ctx, listeners, config, newTestExporter(t, nil).Handler(), slog.New(slog.DiscardHandler))
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	address := listeners[0].Addr().String()
	for password, want := range map[string]int{"secret": http.StatusOK, "wrong": http.StatusUnauthorized} {
		if got := statusOf(t, client, "https://"+address+"/metrics", password); got != want {
			t.Errorf("password %q: status %d, want %d", password, got, want)
		}
	}
	if got := statusOf(t, http.DefaultClient, "http://"+address+"/metrics", "secret"); got != http.StatusBadRequest {
		t.Errorf("without TLS: status %d", got)
	}
	client.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func statusOf(t *testing.T, client *http.Client, url, password string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("prometheus", password)
	r, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode
}

func TestServeErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken, err := listen(t.Context(), []string{"127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer taken[0].Close()
	address := taken[0].Addr().String()
	tests := []struct {
		name, address, config string
		is                    error
		names                 string
	}{
		{"an address that is taken", address, "", syscall.EADDRINUSE, address},
		{"no configuration", "127.0.0.1:0", filepath.Join(dir, "none.yaml"), fs.ErrNotExist, "none.yaml"},
		{"a bad configuration", "127.0.0.1:0", writeFile(t, dir, "bad.yaml", "tls: 1"), nil, "bad.yaml"},
	}
	for _, tt := range tests {
		err := Serve(t.Context(), []string{"127.0.0.1:0", tt.address}, tt.config, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), tt.names) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: error %v", tt.name, err)
		}
	}
}

func writeFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeCertificate writes cert.pem and key.pem for 127.0.0.1, and returns who
// trusts them.
func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "railhead"},
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, dir, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	writeFile(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate)
	return pool
}
