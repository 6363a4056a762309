package overview

import (
	"errors"
	"io/fs"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func TestReadError(t *testing.T) {
	t.Parallel()
	group := configs.GroupResource()
	for name, tt := range map[string]struct {
		err  error
		is   error
		want string
	}{
		"no CRD": {
			apierrors.NewNotFound(group, ""), fs.ErrNotExist,
			"list spidermultusconfigs.spiderpool.spidernet.io: the API server does not know them: install the CRDs of Railhead (kubectl apply -f charts/railhead/crds), or look at another cluster with --context",
		},
		"forbidden": {
			apierrors.NewForbidden(group, "", nil), fs.ErrPermission,
			"list spidermultusconfigs.spiderpool.spidernet.io: forbidden: want a role with the verb list on spidermultusconfigs.spiderpool.spidernet.io in namespace ai",
		},
		"unauthorized": {
			apierrors.NewUnauthorized("who"), fs.ErrPermission,
			"list spidermultusconfigs.spiderpool.spidernet.io: the API server does not know who asks: want valid credentials in the kubeconfig",
		},
		"another": {fs.ErrClosed, fs.ErrClosed, "list spidermultusconfigs.spiderpool.spidernet.io: file already closed"},
	} {
		got := readError(configs, "ai", tt.err)
		if got.Error() != tt.want || !errors.Is(got, tt.is) || !errors.Is(got, tt.err) {
			t.Errorf("%s: %q, which is %v: %v; want %q", name, got, tt.is, errors.Is(got, tt.is), tt.want)
		}
	}
}
