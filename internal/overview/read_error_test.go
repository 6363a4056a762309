package overview

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestReadError(t *testing.T) {
	t.Parallel()
	r := &Reader{server: "https://api:6443"}
	group := configs.GroupResource()
	asked := func(err error) error { return &url.Error{Op: "Get", URL: "https://api:6443/apis/x", Err: err} }
	for name, tt := range map[string]struct {
		err  error
		is   error
		want string
	}{
		"no CRD": {
			apierrors.NewNotFound(group, ""), fs.ErrNotExist,
			"the API server https://api:6443 does not know spidermultusconfigs.spiderpool.spidernet.io: install the CRDs of Railhead (kubectl apply --server-side -f charts/railhead/crds), or look at another cluster with --context",
		},
		"forbidden": {
			apierrors.NewForbidden(group, "", nil), fs.ErrPermission,
			"list spidermultusconfigs.spiderpool.spidernet.io: forbidden: want a role with the verb list on spidermultusconfigs.spiderpool.spidernet.io in namespace ai",
		},
		"unauthorized": {
			apierrors.NewUnauthorized("who"), fs.ErrPermission,
			"the API server https://api:6443 does not know who asks: want valid credentials in the kubeconfig",
		},
		"nobody there": {
			asked(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}), ErrUnreachable,
			"the API server https://api:6443 does not answer: dial tcp: connection refused; want it running and reachable from here, or another cluster with --kubeconfig or --context",
		},
		"somebody else there": {
			asked(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}), ErrUnreachable,
			"the API server https://api:6443 cannot be trusted: x509: certificate signed by unknown authority; want its certificate-authority-data in the kubeconfig, or another cluster with --kubeconfig or --context",
		},
		"no credentials": {
			asked(errors.New("getting credentials: exec: executable cloud not found\n\nwant it installed")), ErrUnreachable,
			"the API server https://api:6443 was not asked: getting credentials: exec: executable cloud not found; want a user in the kubeconfig whose credentials can be had, or another cluster with --kubeconfig or --context",
		},
		"another": {fs.ErrClosed, fs.ErrClosed, "list spidermultusconfigs.spiderpool.spidernet.io: the API server https://api:6443 answers: file already closed"},
	} {
		got := r.readError("list", configs, "ai", tt.err)
		if got.Error() != tt.want || !errors.Is(got, tt.is) || !errors.Is(got, tt.err) {
			t.Errorf("%s: %q, which is %v: %v; want %q", name, got, tt.is, errors.Is(got, tt.is), tt.want)
		}
	}
}

// TestBrief: one line for what one command mends.
func TestBrief(t *testing.T) {
	t.Parallel()
	r := &Reader{server: "https://api:6443"}
	notFound := apierrors.NewNotFound(ledgers.GroupResource(), "")
	gone := r.readError("list", ledgers, "", &url.Error{Op: "Get", URL: "x", Err: net.ErrClosed})
	var got []string
	for _, err := range Brief([]error{
		errors.New("first"), r.readError("list", ledgers, "", notFound), gone, r.readError("list", nads, "", notFound), r.readError("get", leases, "", notFound),
		gone, fmt.Errorf("%w, and so", gone),
	}) {
		got = append(got, err.Error())
	}
	want := []string{
		"first",
		"the API server https://api:6443 does not know poolledgers.railhead.io, addressleases.railhead.io: install the CRDs of Railhead (kubectl apply --server-side -f charts/railhead/crds), or look at another cluster with --context",
		gone.Error(),
		"the API server https://api:6443 does not know network-attachment-definitions.k8s.cni.cncf.io: install the CRDs of Railhead (kubectl apply --server-side -f charts/railhead/crds) or Multus, or look at another cluster with --context",
		gone.Error() + ", and so",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
