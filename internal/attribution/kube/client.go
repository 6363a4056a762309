package kube

import (
	"log/slog"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// clients returns what asks for the metadata of objects, and what asks for the
// kinds that an API version serves.
//
// The latter is not client-go's discovery: that links the types of all of
// Kubernetes, which is 19 MB of program and 14 MB of memory on each node.
func clients(config *rest.Config) (metadata.Interface, rest.Interface, error) {
	config = metadata.ConfigFor(config) // a copy, which says who asks
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	objects, err := metadata.NewForConfigAndClient(config, http)
	if err != nil {
		return nil, nil, err
	}
	lists := runtime.NewScheme()
	metav1.AddToGroupVersion(lists, schema.GroupVersion{Version: "v1"}) // with metav1.APIResourceList
	config.AcceptContentTypes, config.ContentType = "application/json", "application/json"
	config.NegotiatedSerializer = serializer.NewCodecFactory(lists).WithoutConversion()
	resources, err := rest.UnversionedRESTClientForConfigAndClient(config, http)
	return objects, resources, err
}

// clientLogger is where client-go logs. What it says of the API server being
// away, the link tells already.
func clientLogger(log *slog.Logger) logr.Logger {
	return logr.FromSlogHandler(log.Handler()).V(-int(slog.LevelDebug))
}
