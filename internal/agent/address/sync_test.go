package address

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestTold holds that what happens wherever two write is no warning, and that each
// thing is told once.
func TestTold(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "addressleases"}, "node1", errors.New("it was modified"))
	away := apierrors.NewServiceUnavailable("away")
	var log bytes.Buffer
	s := newSyncer()
	for _, step := range []struct {
		err   error
		level string // "": nothing is logged
	}{
		{nil, ""},
		{conflict, "INFO"},
		{conflict, ""},
		{nil, "INFO"},
		{nil, ""},
		{away, "WARN"},
		{away, ""},
		{conflict, "INFO"},
		{away, "WARN"},
		{nil, "INFO"},
	} {
		log.Reset()
		s.told(step.err, slog.New(slog.NewTextHandler(&log, nil)))
		text := log.String()
		if (text == "") != (step.level == "") || !strings.Contains(text, "level="+step.level) && step.level != "" {
			t.Errorf("%v: logged %q, want level %q", step.err, text, step.level)
		}
		if got := s.failure(); !errors.Is(got, step.err) {
			t.Errorf("failure %v, want %v", got, step.err)
		}
	}
}
