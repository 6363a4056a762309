package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	kjson "sigs.k8s.io/json"
)

// maxBody bounds what is read of a request: an object and what it was before, each
// at most the 3 MiB that the API server takes.
const maxBody = 8 << 20

// handler answers with what decide says of a request. What is no admission request
// is answered with status 400.
func (s *Server) handler(webhook string, decide func(context.Context, *admissionv1.AdmissionRequest) answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		review, err := readReview(w, r)
		if err != nil {
			s.metrics.malformed(webhook)
			s.log.Warn("not an admission request", "webhook", webhook, "err", err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a := decide(r.Context(), review.Request)
		s.metrics.answered(webhook, review.Request.Kind.Kind, a.verdict(), time.Since(began))
		s.report(webhook, review.Request, a)
		review.Response = a.response(review.Request)
		review.Request = nil
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			s.log.Warn("an answer did not go out", "webhook", webhook, "err", err)
		}
	})
}

// readReview reads the request that a body carries.
func readReview(w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionReview, error) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return nil, fmt.Errorf("content type %q: want application/json", r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("read the body: %w", err)
	}
	var review admissionv1.AdmissionReview
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, &review); err != nil {
		return nil, fmt.Errorf("decode an AdmissionReview: %w", err)
	}
	if got, want := review.GroupVersionKind(), admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"); got != want {
		return nil, fmt.Errorf("got %s: want %s", got, want)
	}
	if review.Request == nil {
		return nil, errors.New("the AdmissionReview has no request")
	}
	return &review, nil
}

// report logs what somebody may ask about later.
func (s *Server) report(webhook string, r *admissionv1.AdmissionRequest, a answer) {
	if a.refusal == nil {
		return
	}
	log := s.log.Info
	if a.verdict() == failed {
		log = s.log.Error
	}
	log("request not admitted", "webhook", webhook, "operation", r.Operation, "kind", r.Kind.Kind,
		"namespace", r.Namespace, "name", r.Name, "user", r.UserInfo.Username, "reason", a.refusal.Message)
}
