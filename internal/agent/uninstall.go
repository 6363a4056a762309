package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"railhead/internal/attach/record"
	"railhead/internal/cniinstall"
)

// Uninstalling must end within the grace period of a pod, half a minute.
const (
	uninstallLimit = 10 * time.Second
	uninstallPause = time.Second
	// refusedLimit is for how long the API server must refuse us before we take it
	// that our rights are gone for good, and not just being replaced.
	refusedLimit = 5 * time.Second
)

// errStays is of an agent that is only restarted.
var errStays = errors.New("the agent is not uninstalled")

// leave takes away what the agent brought to its node if it is uninstalled: if
// the DaemonSet of its pod is gone. An agent that is restarted or updated leaves
// everything as it is, and so does one that cannot tell.
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
	state, err := r.installer().Remove(ctx)
	r.log.Info("uninstalled", "removed", state.Changed, "error", err)
	if err == nil && len(records.All()) == 0 {
		r.emptied = true
	}
	return err
}

// installer installs our program and network on the node.
func (r *networking) installer() *cniinstall.Installer {
	c := r.config.CNI
	return cniinstall.New(cniinstall.Config{Program: c.Program, BinDir: r.seen(c.BinDir), ConfDir: r.seen(c.ConfDir), Socket: c.Socket})
}

// uninstalled returns nil if the DaemonSet that made our pod is gone. Deleting a
// manifest takes our rights with it: who refuses us for long says the same.
func (r *networking) uninstalled(ctx context.Context) error {
	client, err := metadata.NewForConfig(metadata.ConfigFor(r.config.Kubernetes))
	if err != nil {
		return err
	}
	var refusedSince time.Time
	var last error
	err = wait.PollUntilContextCancel(ctx, uninstallPause, true, func(ctx context.Context) (bool, error) {
		last = daemonSetGone(ctx, client, r.config.Namespace, r.config.CNI.Pod)
		switch {
		case last == nil, errors.Is(last, errStays):
			return true, nil
		case !apierrors.IsForbidden(last) && !apierrors.IsUnauthorized(last), !r.apiReady(ctx):
			refusedSince = time.Time{}
		case refusedSince.IsZero():
			refusedSince = time.Now()
		case time.Since(refusedSince) >= refusedLimit:
			last = nil
			return true, nil
		}
		return false, nil
	})
	return errors.Join(last, err)
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

// daemonSetGone returns nil if the DaemonSet of a pod is deleted, an errStays if
// it is not, and another error if that cannot be told.
func daemonSetGone(ctx context.Context, client metadata.Interface, namespace, pod string) error {
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

// clear removes the directories of an agent that has left for good, with nothing
// in them that a later one would need.
func (a *Agent) clear() error {
	n := a.networking
	if n == nil || !n.emptied || len(a.addresses.Assignments()) > 0 {
		return nil
	}
	return errors.Join(os.RemoveAll(n.config.AddressesDir), os.RemoveAll(n.config.CNI.AttachmentsDir))
}
