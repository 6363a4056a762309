package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// Pair is a certificate and its private key in PEM (the key in PKCS #8).
type Pair struct{ Cert, Key []byte }

// KeyPair is a private key (PKCS #8) and its public half (PKIX) in PEM.
type KeyPair struct{ Private, Public []byte }

// Authority issues certificates. It is safe for concurrent use.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf says what a certificate is to say.
type Leaf struct {
	Subject   pkix.Name // CommonName is the user, Organization are the groups
	Names     []string
	Addresses []netip.Addr
	Client    bool // to show to servers
	Server    bool // to show to clients
}

// early is how long before it is made a certificate holds.
const early = time.Hour

// NewAuthority makes an authority that signs itself.
func NewAuthority(name string, now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-early),
		NotAfter:              now.AddDate(1, 0, 0),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, err := sign(template, template, key, key)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	block, _ := pem.Decode(pair.Cert)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority %s: %w", name, err)
	}
	return &Authority{Pair: pair, cert: cert, key: key}, nil
}

// Issue makes a certificate that holds as long as the authority's own.
func (a *Authority) Issue(leaf Leaf) (Pair, error) {
	usages := leaf.usages()
	if len(usages) == 0 {
		return Pair{}, fmt.Errorf("certificate %s: for neither clients nor servers, want at least one", leaf.Subject.CommonName)
	}
	key, err := newKey()
	if err != nil {
		return Pair{}, err
	}
	template := &x509.Certificate{
		Subject:               leaf.Subject,
		NotBefore:             a.cert.NotBefore,
		NotAfter:              a.cert.NotAfter,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           usages,
		BasicConstraintsValid: true,
		DNSNames:              leaf.Names,
	}
	for _, address := range leaf.Addresses {
		template.IPAddresses = append(template.IPAddresses, net.IP(address.AsSlice()))
	}
	pair, err := sign(template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("certificate %s: %w", leaf.Subject.CommonName, err)
	}
	return pair, nil
}

func (l Leaf) usages() []x509.ExtKeyUsage {
	var usages []x509.ExtKeyUsage
	if l.Client {
		usages = append(usages, x509.ExtKeyUsageClientAuth)
	}
	if l.Server {
		usages = append(usages, x509.ExtKeyUsageServerAuth)
	}
	return usages
}

// sign makes a certificate of a template for key, signed by the parent's key.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial.Add(serial, big.NewInt(1)) // zero is not allowed (RFC 5280 4.1.2.2)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	if err != nil {
		return Pair{}, err
	}
	private, err := encodeKey(key)
	return Pair{Cert: encode("CERTIFICATE", der), Key: private}, err
}

func newKey() (*ecdsa.PrivateKey, error) {
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

func newKeyPair() (KeyPair, error) {
	key, err := newKey()
	if err != nil {
		return KeyPair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return KeyPair{}, err
	}
	private, err := encodeKey(key)
	return KeyPair{Private: private, Public: encode("PUBLIC KEY", public)}, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return encode("PRIVATE KEY", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
