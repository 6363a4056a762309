package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"railhead/internal/attach/record"
	"railhead/internal/npwg"
	"railhead/internal/overview"
)

// podExplanation is which addresses a pod has, and how it was attached.
type podExplanation struct {
	overview.Explanation

	// Status is what the pod's annotation k8s.v1.cni.cncf.io/network-status says.
	Status []npwg.NetworkStatus `json:"networkStatus,omitempty"`
	// Attachment is what the annotation railhead.io/attachment says; nil without one.
	Attachment *record.Report `json:"attachment,omitempty"`
	// Failed is why it could not be attached; nil if it could, or since could.
	Failed *overview.PodEvent `json:"failed,omitempty"`
}

// attached adds what the pod's annotations and Events say.
func (e *podExplanation) attached(ctx context.Context, reader *overview.Reader, o *overview.PodObjects) []error {
	var errs []error
	if text := o.Pod.Annotations[npwg.AnnotationStatus]; text != "" {
		var err error
		if e.Status, err = npwg.ParseStatus(text); err != nil {
			errs = append(errs, err)
		}
	}
	if text := o.Pod.Annotations[record.Annotation]; text != "" {
		if report, err := record.ParseAnnotation(text); err != nil {
			errs = append(errs, err)
		} else {
			e.Attachment = &report
		}
	}
	failed, err := reader.LastEvent(ctx, o.Pod, record.EventReason)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		errs = append(errs, err)
	case failed != nil && e.isStill(failed):
		e.Failed = failed
	}
	return errs
}

// isStill says whether a pod could not be attached since.
func (e *podExplanation) isStill(failed *overview.PodEvent) bool {
	const running = "Running"
	return e.Phase != running && (e.Attachment == nil || e.Attachment.At.Before(failed.Last))
}

// interfaces are those of the pod, by both annotations.
func (e *podExplanation) interfaces() []interfaceRow {
	var rows []interfaceRow
	for i := range e.Status {
		s := &e.Status[i]
		row := interfaceRow{network: s.Name}
		row.Name, row.MAC, row.MTU, row.Addresses, row.Gateways = s.Interface, s.MAC, s.MTU, s.IPs, s.Gateway
		rows = append(rows, row)
	}
	if e.Attachment == nil {
		return rows
	}
	for _, made := range e.Attachment.Interfaces {
		at := slices.IndexFunc(rows, func(r interfaceRow) bool { return r.Name == made.Name })
		if at < 0 {
			at, rows = len(rows), append(rows, interfaceRow{})
		}
		row := &rows[at]
		if made.MAC == "" {
			made.MAC = row.MAC
		}
		if made.MTU == 0 {
			made.MTU = row.MTU
		}
		if len(made.Addresses) == 0 {
			made.Addresses = row.Addresses
		}
		row.Interface = made
	}
	return rows
}

// printAttached shows how the pod was attached.
func (e *podExplanation) printAttached(w io.Writer) error {
	if rows := e.interfaces(); len(rows) > 0 {
		if err := printSection(w, "interfaces:", interfacesTable, rows); err != nil {
			return err
		}
	}
	if e.Attachment == nil {
		return nil
	}
	var b strings.Builder
	printLines(&b, "routes:", e.Attachment.Routes)
	printLines(&b, "rules:", e.Attachment.Rules)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return printChecks(w, e.Attachment)
}

// notes are about addresses, and about how the pod was attached. What was found
// then, and is so still, is said once.
func (e *podExplanation) notes() []string {
	notes := slices.Clone(e.Warnings)
	if e.Attachment == nil {
		return notes
	}
	for _, note := range e.Attachment.Notes {
		if !slices.Contains(notes, note) {
			notes = append(notes, note)
		}
	}
	return notes
}

// whyFailed says why the pod could not be attached.
func (e *podExplanation) whyFailed() []string {
	if e.Failed == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(e.Failed.Message), "\n")
	if e.Failed.Last.IsZero() {
		return lines
	}
	when := "at " + e.Failed.Last.UTC().Format(time.RFC3339)
	if e.Failed.Count > 1 {
		when = fmt.Sprintf("%d times, last %s", e.Failed.Count, when)
	}
	return append(lines, when)
}

// attachedWords say when the pod was attached, for its first line.
func (e *podExplanation) attachedWords() string {
	switch {
	case e.Failed != nil:
		return ", could not be attached"
	case e.Attachment == nil || e.Attachment.At.IsZero():
		return ""
	case e.Attachment.Took == 0:
		return ", attached at " + e.Attachment.At.UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf(", attached at %s in %s", e.Attachment.At.UTC().Format(time.RFC3339), took(e.Attachment.Took))
}
