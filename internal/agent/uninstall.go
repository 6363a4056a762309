package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"railhead/internal/agent/cluster"
	"railhead/internal/attach/record"
	"railhead/internal/cniinstall"
)

// Uninstalling must end within the grace period that deploy/railhead-agent.yaml gives
// an agent, a minute, of which calls that are under way may take a part.
const (
	uninstallLimit = 20 * time.Second
	uninstallPause = time.Second
	// refusedLimit is for how long the API server must not know us any more before we
	// take it that our service account is gone for good.
	refusedLimit = 5 * time.Second
	// forbiddenLimit is for how long we may have no rights until we take it that these
	// alone are gone: API servers know a service account for 10 s after its end.
	forbiddenLimit = 12 * time.Second
)

// errStays is of an agent that is only restarted.
var errStays = errors.New("the agent is not uninstalled")

// leave takes away what the agent brought to its node if it is uninstalled. An
// agent that is restarted or updated leaves everything as it is, and so does one
// that cannot tell: pods that start on a node without our network have the
// cluster's own alone, and nobody says so, whereas with it and without an agent
// they wait for one.
func (r *networking) leave(ctx context.Context, records *record.Store) error {
	if r.config.CNI.Pod == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), uninstallLimit)
	defer cancel()
	if err := r.uninstalled(ctx); err != nil {
		r.log.Info("the CNI program and network stay", "because", err)
		return nil
	}
	removed, err := r.remove(ctx)
	r.log.Info("uninstalled", "removed", removed, "error", err)
	r.left = true
	r.emptied = err == nil && len(records.All()) == 0
	return err
}

// remove removes program and network from the node, and tries again what cannot be
// removed while there is time: nobody comes after us who would. It returns the
// paths that are gone.
func (r *networking) remove(ctx context.Context) (removed []string, err error) {
	for installer := r.installer(); ; {
		var state cniinstall.State
		state, err = installer.Remove(ctx)
		removed = append(removed, state.Changed...)
		if err == nil {
			return removed, nil
		}
		select {
		case <-ctx.Done():
			return removed, err
		case <-time.After(uninstallPause):
		}
	}
}

// installer installs our program and network on the node.
func (r *networking) installer() *cniinstall.Installer {
	c := r.config.CNI
	return cniinstall.New(cniinstall.Config{Program: c.Program, BinDir: r.seen(c.BinDir), ConfDir: r.seen(c.ConfDir), Socket: c.Socket})
}

// uninstalled returns nil if the DaemonSet that made our pod is gone, or its
// namespace is on its way.
//
// Who deletes a manifest deletes our rights with it, so that mostly we may not ask.
// That alone says nothing: rights are gone as well while somebody replaces a
// ClusterRoleBinding and agents are being restarted. A manifest has our service
// account too, and without that the API server does not know us any more: then we
// take it that the DaemonSet is gone. Where somebody replaces the account, and
// restarts agents meanwhile, their nodes are without our network until the next
// agent installs it, which is among the first things that it does.
func (r *networking) uninstalled(ctx context.Context) error {
	client, err := metadata.NewForConfig(metadata.ConfigFor(r.config.Kubernetes))
	if err != nil {
		return err
	}
	var unknown, forbidden since
	var last error
	err = wait.PollUntilContextCancel(ctx, uninstallPause, true, func(ctx context.Context) (bool, error) {
		last = daemonSetGone(ctx, client, r.config.Namespace, r.config.CNI.Pod)
		refused := (apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last)) && r.apiReady(ctx)
		switch {
		case last == nil, errors.Is(last, errStays):
			return true, nil
		case unknown.is(refused && apierrors.IsUnauthorized(last) && r.hasToken(), refusedLimit):
			last = nil
			return true, nil
		case forbidden.is(refused && apierrors.IsForbidden(last), forbiddenLimit):
			last = fmt.Errorf("%w: its rights are gone and its service account is not: %w", errStays, last)
			return true, nil
		}
		return false, nil
	})
	return errors.Join(last, err)
}

// since is when something began to be so; zero while it is not.
type since time.Time

// is says whether something has been so for a time.
func (s *since) is(now bool, least time.Duration) bool {
	switch {
	case !now:
		*s = since{}
	case time.Time(*s).IsZero():
		*s = since(time.Now())
	}
	return now && time.Since(time.Time(*s)) >= least
}

// hasToken says whether our token is one that the API server should know: one that
// has expired, by a clock or for want of a kubelet, is refused whoever we are.
func (r *networking) hasToken() bool {
	file := r.config.Kubernetes.BearerTokenFile
	if file == "" {
		return true // it is not by a token that we are known
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	parts := strings.Split(string(text), ".")
	if len(parts) != 3 {
		return false
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var token struct {
		Expires int64 `json:"exp"`
	}
	return json.Unmarshal(claims, &token) == nil && time.Unix(token.Expires, 0).After(time.Now())
}

// apiReady says whether the API server knows who has which rights: one that is
// starting refuses everybody.
func (r *networking) apiReady(ctx context.Context) bool {
	client, err := rest.HTTPClientFor(r.config.Kubernetes)
	if err != nil {
		return false
	}
	base, _, err := rest.DefaultServerUrlFor(r.config.Kubernetes)
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // its status is all
	return response.StatusCode == http.StatusOK || response.StatusCode == http.StatusUnauthorized
}

// daemonSetGone returns nil if the DaemonSet of a pod is deleted, or its namespace
// with all that is in it; an errStays if they are not, and another error if that
// cannot be told.
func daemonSetGone(ctx context.Context, client metadata.Interface, namespace, pod string) error {
	// A namespace that ends may take its pods before what made them.
	home, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, namespace, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err): // it outlives its last pod
		return fmt.Errorf("%w: there is no namespace %s, so that its DaemonSet is not known", errStays, namespace)
	case err == nil && home.DeletionTimestamp != nil:
		return nil
	case err != nil && !apierrors.IsForbidden(err): // pods may still be asked for
		return err
	}
	own, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace).Get(ctx, pod, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: pod %s/%s is gone, so that its DaemonSet is not known", errStays, namespace, pod)
	}
	if err != nil {
		return err
	}
	owner := metav1.GetControllerOf(own)
	if owner == nil || owner.Kind != "DaemonSet" {
		return fmt.Errorf("%w: pod %s/%s is of no DaemonSet", errStays, namespace, pod)
	}
	sets := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "daemonsets"})
	set, err := sets.Namespace(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && set.UID == owner.UID && set.DeletionTimestamp != nil:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: DaemonSet %s/%s is there", errStays, namespace, owner.Name)
}

// clear removes the directories of an agent that has left for good, as far as
// nothing is in them that a later one would need.
func (a *Agent) clear() error {
	n := a.networking
	switch {
	case n == nil || !n.left:
		return nil
	case !n.emptied || len(a.addresses.Assignments()) > 0:
		return cluster.Forget(n.config.CNI.AttachmentsDir)
	}
	return errors.Join(os.RemoveAll(n.config.AddressesDir), os.RemoveAll(n.config.CNI.AttachmentsDir))
}
