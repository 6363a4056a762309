package address

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// kindOf is the same for errors that are no news after each other. The texts of
// some name what is another at every try: a port of ours, the time.
func kindOf(err error) string {
	var status apierrors.APIStatus
	var dns *net.DNSError
	var op *net.OpError
	var certificate x509.CertificateInvalidError
	switch {
	case errors.As(err, &status):
		s := status.Status()
		if s.Details == nil {
			return fmt.Sprint(s.Code, s.Reason)
		}
		return fmt.Sprint(s.Code, s.Reason, s.Details.Kind, s.Details.Name)
	case errors.As(err, &dns):
		return fmt.Sprint("lookup", dns.Name, dns.IsTimeout, dns.IsNotFound)
	case errors.As(err, &op):
		return op.Op + op.Err.Error()
	case errors.As(err, &certificate):
		return fmt.Sprint("certificate", certificate.Reason)
	}
	return err.Error()
}
