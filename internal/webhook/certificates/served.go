package certificates

import (
	"bytes"
	"crypto/tls"
	"errors"
	"sync"
)

// served is what connections are answered with now.
type served struct {
	mu       sync.RWMutex
	pair     *tls.Certificate
	bundle   []byte
	onChange func()
}

// GetCertificate is for tls.Config.
func (s *served) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.pair == nil {
		return nil, errors.New("there is no serving certificate yet")
	}
	return s.pair, nil
}

// Bundle returns the CA certificates (PEM) that clients must trust, and false
// until there is a serving certificate. It may be empty for files without a
// ca.crt: then clients get theirs from elsewhere.
func (s *served) Bundle() ([]byte, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.bundle, s.pair != nil
}

// OnChange has f called whenever Bundle returns something else. It is set before Start.
func (s *served) OnChange(f func()) { s.onChange = f }

// serve takes a pair and a bundle into use.
func (s *served) serve(pair *tls.Certificate, bundle []byte) {
	s.mu.Lock()
	changed := s.pair == nil || !bytes.Equal(s.bundle, bundle)
	s.pair, s.bundle = pair, bundle
	s.mu.Unlock()
	if changed && s.onChange != nil {
		s.onChange()
	}
}
