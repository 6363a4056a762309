package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"railhead/api/spiderpool/v2beta1"
)

// Bounds of the detection of gateways and conflicts: the kubelet waits for it.
const (
	maxRetries   = 100
	maxPause     = 10 * time.Second
	maxDetection = time.Minute
)

// reviewDetection wants durations that are positive and bounded, each and together.
func reviewDetection(r *Review, o *v2beta1.DetectOptions, at *field.Path) {
	if o == nil {
		return
	}
	retries := defaultRetries
	if o.Retries != nil {
		retries = *o.Retries
	}
	timeout := reviewPause(r, o.Timeout, defaultTimeout, at.Child("timeout"))
	interval := reviewPause(r, o.Interval, defaultInterval, at.Child("interval"))
	if retries < 1 || retries > maxRetries {
		r.refuse(at.Child("retries"), retries, "want 1 to %d", maxRetries)
		return
	}
	if whole := time.Duration(retries) * (timeout + interval); whole > maxDetection {
		r.refuse(at, whole.String(), "%d retries of %s and %s between them hold a pod up for %s: want %s at most", retries, timeout, interval, whole, maxDetection)
	}
}

// reviewPause is a duration, or 0 if it is refused.
func reviewPause(r *Review, text *string, otherwise string, at *field.Path) time.Duration {
	if text == nil {
		text = &otherwise
	}
	pause, err := time.ParseDuration(*text)
	if err != nil || pause <= 0 || pause > maxPause {
		r.refuse(at, *text, `want a duration above 0 and up to %s, such as "100ms"`, maxPause)
		return 0
	}
	return pause
}
