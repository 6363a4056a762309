package address

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestNews wants errors to be news where they are of another kind than the one
// before, and not where they name another port or time.
func TestNews(t *testing.T) {
	t.Parallel()
	asked := func(err error) error {
		return fmt.Errorf("node n1: %w", &url.Error{Op: "Get", URL: "https://10.96.0.1/api/v1/nodes/n1", Err: err})
	}
	from := func(port int, err error) error {
		return asked(&net.OpError{
			Op: "read", Net: "tcp", Source: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port},
			Addr: &net.TCPAddr{IP: net.IPv4(10, 96, 0, 1), Port: 443}, Err: os.NewSyscallError("read", err),
		})
	}
	lookup := func(port int, isNotFound bool) error {
		return asked(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{
			Err: fmt.Sprintf("read udp 10.0.0.1:%d->10.96.0.10:53: i/o timeout", port), Name: "api.example", IsTimeout: !isNotFound, IsNotFound: isNotFound,
		}})
	}
	expired := func(at string) error {
		return asked(x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time " + at})
	}
	nodes := schema.GroupResource{Resource: "nodes"}
	for name, test := range map[string]struct {
		before, now error
		isNews      bool
	}{
		"first":               {nil, errTest, true},
		"same":                {errTest, errTest, false},
		"another text":        {errTest, errors.New("another"), true},
		"another port":        {from(41234, syscall.ECONNRESET), from(41236, syscall.ECONNRESET), false},
		"another errno":       {from(41234, syscall.ECONNRESET), from(41234, syscall.ETIMEDOUT), true},
		"another lookup":      {lookup(41234, false), lookup(41236, false), false},
		"no such name":        {lookup(41234, false), lookup(41234, true), true},
		"later":               {expired("10:00"), expired("10:01"), false},
		"answered":            {from(41234, syscall.ECONNRESET), apierrors.NewForbidden(nodes, "n1", errTest), true},
		"answered otherwise":  {apierrors.NewForbidden(nodes, "n1", errTest), apierrors.NewNotFound(nodes, "n1"), true},
		"answered at length":  {apierrors.NewForbidden(nodes, "n1", errTest), apierrors.NewForbidden(nodes, "n1", errEnded), false},
		"answered of another": {apierrors.NewNotFound(nodes, "n1"), apierrors.NewNotFound(nodes, "n2"), true},
	} {
		s := Service{opening: test.before}
		if isNews := s.opens(test.now); isNews != test.isNews {
			t.Errorf("%s: news is %v, want %v, of %q after %q", name, isNews, test.isNews, test.now, test.before)
		}
	}
}
