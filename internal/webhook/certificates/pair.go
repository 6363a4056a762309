package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// skew is how far clocks of nodes may be apart.
const skew = time.Hour

// pair is a serving certificate and its key.
type pair struct {
	certificate, key []byte // PEM
	served           *tls.Certificate
}

// newPair makes a certificate for names and IP addresses, and a CA that signed it
// and signs nothing else, ever: its key is not kept.
func newPair(names []string, now time.Time, validity time.Duration) (*pair, *x509.Certificate, error) {
	if len(names) == 0 {
		return nil, nil, errors.New("a serving certificate without a name: want one that the API server calls")
	}
	from, until := now.Add(-skew), now.Add(validity)
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	ca := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "railhead webhooks CA " + now.UTC().Format(time.RFC3339)},
		NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	if ca, err = sign(ca, ca, caKey.Public(), caKey); err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	leaf := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "railhead webhooks"},
		NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	leaf.DNSNames, leaf.IPAddresses = addressed(names)
	if leaf, err = sign(leaf, ca, key.Public(), caKey); err != nil {
		return nil, nil, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return nil, nil, err
	}
	p, err := parsePair(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: leaf.Raw}), keyPEM)
	return p, ca, err
}

// addressed tells names from IP addresses.
func addressed(names []string) (dns []string, ips []net.IP) {
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			ips = append(ips, ip)
		} else {
			dns = append(dns, name)
		}
	}
	return dns, ips
}

func sign(template, parent *x509.Certificate, key crypto.PublicKey, with crypto.Signer) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, with)
	if err != nil {
		return nil, fmt.Errorf("sign %q: %w", template.Subject.CommonName, err)
	}
	return x509.ParseCertificate(der)
}

func parsePair(certificate, key []byte) (*pair, error) {
	served, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	return &pair{certificate: certificate, key: key, served: &served}, nil
}

// check says why clients that trust cas would not take the certificate for one of
// names now.
func (p *pair) check(names []string, cas []*x509.Certificate, now time.Time) error {
	roots := x509.NewCertPool()
	for _, ca := range cas {
		roots.AddCert(ca)
	}
	intermediates := x509.NewCertPool()
	for _, der := range p.served.Certificate[1:] {
		if c, err := x509.ParseCertificate(der); err == nil {
			intermediates.AddCert(c)
		}
	}
	for _, name := range names {
		_, err := p.served.Leaf.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, Intermediates: intermediates, CurrentTime: now})
		if err != nil {
			return fmt.Errorf("the certificate for %s: %w", name, err)
		}
	}
	return nil
}

// isOld says whether two thirds of the certificate's time are over.
func (p *pair) isOld(now time.Time) bool {
	leaf := p.served.Leaf
	return now.After(leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 3 * 2))
}
