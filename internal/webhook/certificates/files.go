package certificates

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/cert"
)

// filesEvery is how soon a file that was replaced is served.
const filesEvery = 10 * time.Second

// Files serves the certificate that somebody else, such as cert-manager, keeps in a
// directory: tls.crt, tls.key, and ca.crt if clients shall be told whom to trust.
type Files struct {
	served
	directory string
	log       *slog.Logger
	cas       []*x509.Certificate // as read last, and before that while they are valid
}

// NewFiles returns Files that have read nothing before they are started.
func NewFiles(directory string, log *slog.Logger) *Files {
	return &Files{directory: directory, log: log}
}

// Start reads the files again and again until ctx ends. Files that cannot be read
// change nothing: somebody may be about to replace them.
func (f *Files) Start(ctx context.Context) error {
	repeat(ctx, filesEvery, f.log, "read the webhooks' certificate", func(context.Context) error { return f.read() })
	return nil
}

// NeedLeaderElection says that every replica serves.
func (f *Files) NeedLeaderElection() bool { return false }

// read takes into use what the files have. Both old and new CAs are trusted: files
// are not replaced on all replicas at once.
func (f *Files) read() error {
	certificate, err := f.file(corev1.TLSCertKey)
	if err != nil {
		return err
	}
	key, err := f.file(corev1.TLSPrivateKeyKey)
	if err != nil {
		return err
	}
	p, err := parsePair(certificate, key)
	if err != nil {
		return fmt.Errorf("%s and %s in %s: %w", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, f.directory, err)
	}
	m := &material{}
	bundle, err := f.file(keyBundle)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if m.cas, err = cert.ParseCertsPEM(bundle); err != nil {
			return fmt.Errorf("%s in %s: %w", keyBundle, f.directory, err)
		}
		f.cas = trusted(append(m.cas, f.cas...), time.Now())
		m.cas = f.cas
	}
	f.serve(p.served, m.bundle())
	return nil
}

func (f *Files) file(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(f.directory, name))
}
