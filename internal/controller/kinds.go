package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

const (
	kindsInterval = 2 * time.Second  // between two looks
	kindsReminder = 30 * time.Second // between two lines that say the same
)

// lookup says which custom resource definitions are missing, by name.
type lookup func(context.Context) (missing []string, err error)

// wantedResources are those whose objects the controller reads.
func wantedResources() map[schema.GroupVersion][]string {
	return map[schema.GroupVersion][]string{
		v2beta1.GroupVersion: {
			"spidercoordinators", "spiderendpoints", "spiderippools", "spidermultusconfigs", "spiderreservedips", "spidersubnets",
		},
		cniv1.GroupVersion:    {"network-attachment-definitions"},
		v1alpha1.GroupVersion: {"addressleases", "poolledgers"},
	}
}

// lookFor asks the API server what it serves.
func lookFor(config *rest.Config) (lookup, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	return func(ctx context.Context) (missing []string, err error) {
		for group, wanted := range wantedResources() {
			var list metav1.APIResourceList
			err := client.RESTClient().Get().AbsPath("/apis", group.Group, group.Version).Do(ctx).Into(&list)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			for _, name := range wanted {
				if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
					missing = append(missing, name+"."+group.Group)
				}
			}
		}
		slices.Sort(missing)
		return missing, nil
	}, nil
}

// faultOf is what is wrong with the API server, the same for the same fault:
// without the path that was asked for first, and without our own port.
func faultOf(err error) string {
	text := err.Error()
	if request, ok := errors.AsType[*url.Error](err); ok {
		text = request.Err.Error()
		if at, err := url.Parse(request.URL); err == nil {
			text = at.Host + ": " + text
		}
	}
	return withoutPorts(text)
}

// withoutPorts leaves out where a connection came from, which would make the same
// fault another text at every try: read tcp 10.0.0.1:41234->10.0.0.2:443.
func withoutPorts(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		from, to, _ := strings.Cut(word, "->")
		if _, err := netip.ParseAddrPort(from); err == nil && to != "" {
			words[i] = to
		}
	}
	return strings.Join(words, " ")
}

// awaitKinds returns once everything wanted is served, or when ctx ends. It
// says what it waits for whenever that changes, and as a reminder.
func awaitKinds(ctx context.Context, look lookup, health *health, log *slog.Logger) error {
	said, when := "", time.Time{}
	for {
		missing, err := look(ctx)
		if err == nil && len(missing) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		waiting := "custom resource definitions " + strings.Join(missing, ", ") + " (charts/railhead/crds has them)"
		if err != nil {
			waiting = "the API server: " + faultOf(err)
		}
		health.wait(waiting)
		if waiting != said || time.Since(when) >= kindsReminder {
			log.Warn("waiting for what the controller cannot work without", "missing", waiting)
			said, when = waiting, time.Now()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(kindsInterval):
		}
	}
}
