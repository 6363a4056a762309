package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
	admission "k8s.io/api/admission/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stamp is an annotation that the webhook adds.
type stamp struct{ name, value string }

func webhookCommand() *cobra.Command {
	var address, certificate, key, annotation string
	cmd := &cobra.Command{
		Use:     "webhook",
		Short:   "Be a mutating admission webhook that adds an annotation to every object",
		Example: `  probe webhook --cert /tls/tls.crt --key /tls/tls.key --annotation example.com/seen=yes`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, value, ok := strings.Cut(annotation, "=")
			if !ok || name == "" {
				return fmt.Errorf("annotation %q: want name=value", annotation)
			}
			pair, err := tls.LoadX509KeyPair(certificate, key)
			if err != nil {
				return err
			}
			return serveWebhook(cmd.Context(), cmd.OutOrStdout(), address, pair, stamp{name, value})
		},
	}
	cmd.Flags().StringVar(&address, "listen", ":8443", "address to serve")
	cmd.Flags().StringVar(&certificate, "cert", "", "file with the certificate for the Service's name")
	cmd.Flags().StringVar(&key, "key", "", "file with its key")
	cmd.Flags().StringVar(&annotation, "annotation", "probe.railhead.io/seen=true", "what to add, as name=value")
	return cmd
}

// serveWebhook serves until the context ends and prints a line an object.
func serveWebhook(ctx context.Context, out io.Writer, address string, pair tls.Certificate, s stamp) error {
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "webhook %s\n", l.Addr())
	server := &http.Server{
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var review admission.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			answer, err := s.review(review)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			fmt.Fprintf(out, "reviewed %s %s/%s\n", review.Request.Kind.Kind, review.Request.Namespace, review.Request.Name)
			_ = json.NewEncoder(w).Encode(answer) // the API server will ask again
		}),
	}
	return serveHTTP(ctx, server, l)
}

// review allows the object and adds the annotation. A patch of JSON cannot add to a map that is not there.
func (s stamp) review(in admission.AdmissionReview) (admission.AdmissionReview, error) {
	if in.Request == nil {
		return in, errors.New("an AdmissionReview without a request")
	}
	var object meta.PartialObjectMetadata
	if err := json.Unmarshal(in.Request.Object.Raw, &object); err != nil {
		return in, fmt.Errorf("object of the request: %w", err)
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	add := operation{"add", "/metadata/annotations", map[string]string{s.name: s.value}}
	if object.Annotations != nil {
		escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(s.name)
		add = operation{"add", "/metadata/annotations/" + escaped, s.value}
	}
	patch, err := json.Marshal([]operation{add})
	if err != nil {
		return in, err
	}
	form := admission.PatchTypeJSONPatch
	return admission.AdmissionReview{
		TypeMeta: in.TypeMeta,
		Response: &admission.AdmissionResponse{UID: in.Request.UID, Allowed: true, Patch: patch, PatchType: &form},
	}, nil
}
