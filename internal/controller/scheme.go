package controller

import (
	"errors"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
)

// newScheme knows the kinds of Kubernetes, those that users write, and ours.
func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	return scheme, errors.Join(
		clientgoscheme.AddToScheme(scheme), v2beta1.AddToScheme(scheme), cniv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme),
	)
}
