package controller

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"railhead/internal/policy"
)

func configMap(name, version, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "railhead-system", Name: name, ResourceVersion: version},
		Data:       map[string]string{policy.ConfigMapKey: text},
	}
}

// TestSettings takes ConfigMaps of both names through their life: the first name
// counts before the second, what cannot be understood changes nothing, and what
// is gone leaves defaults.
func TestSettings(t *testing.T) {
	t.Parallel()
	catalog, changes := policy.NewCatalog(), 0
	s := newSettings(catalog, []string{"new", "old"}, slog.New(slog.DiscardHandler))
	s.onChange = append(s.onChange, func() { changes++ })
	steps := []struct {
		name    string
		do      func()
		flag    bool // enableIPv6
		valid   bool
		changes int
	}{
		{"old", func() { s.put(configMap("old", "1", "enableIPv6: false")) }, false, true, 1},
		{"the same again", func() { s.put(configMap("old", "1", "enableIPv6: false")) }, false, true, 1},
		{"new", func() { s.put(configMap("new", "2", "enableIPv6: true")) }, true, true, 2},
		{"old, which counts no more", func() { s.put(configMap("old", "3", "nonsense: 1")) }, true, true, 2},
		{"new, off", func() { s.put(configMap("new", "4", "enableIPv6: false")) }, false, true, 3},
		{"new, wrong", func() { s.put(configMap("new", "5", "enableIPV6: true")) }, false, false, 3},
		{"new, without the key", func() { s.put(&corev1.ConfigMap{ObjectMeta: configMap("new", "6", "").ObjectMeta}) }, false, false, 3},
		{"new, right", func() { s.put(configMap("new", "7", "enableIPv6: true")) }, true, true, 4},
		{"new is gone, old is wrong", func() { s.remove(configMap("new", "7", "")) }, true, false, 4},
		{"both are gone", func() { s.remove(configMap("old", "3", "")) }, true, true, 5},
	}
	for _, step := range steps {
		step.do()
		if got := catalog.Config().EnableIPv6; got != step.flag || s.isValid() != step.valid || changes != step.changes {
			t.Errorf("%s: enableIPv6 %t, valid %t, %d changes; want %t, %t, %d", step.name, got, s.isValid(), changes, step.flag, step.valid, step.changes)
		}
	}
}

// TestSettingsEvents wants the last problem told by whoever becomes the leader,
// with what is wrong, and a change never to wait for anybody.
func TestSettingsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSettings(policy.NewCatalog(), []string{"new"}, slog.New(slog.DiscardHandler))
		changes := s.changes()
		s.put(configMap("new", "1", "enableIPv4: true"))
		s.put(configMap("new", "2", "enableIPv4: false"))
		s.put(configMap("new", "3", "first: 1"))
		s.put(configMap("new", "4", "enableIPV4: 1"))
		if len(changes) != 1 {
			t.Errorf("%d events of changes wait, want one for both", len(changes))
		}
		recorder := events.NewFakeRecorder(10)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.report(ctx, recorder) }()
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		close(recorder.Events)
		var told []string
		for e := range recorder.Events {
			told = append(told, e)
		}
		if len(told) != 1 || !strings.HasPrefix(told[0], "Warning Invalid") || !strings.Contains(told[0], "enableIPV4") {
			t.Errorf("Events %q, want one of the last problem", told)
		}
	})
}

// TestSettingsMended wants a problem that is none any more not told by a replica
// that becomes the leader later.
func TestSettingsMended(t *testing.T) {
	t.Parallel()
	s := newSettings(policy.NewCatalog(), []string{"new"}, slog.New(slog.DiscardHandler))
	for _, mend := range []func(){
		func() { s.put(configMap("new", "2", "enableIPv4: true")) },
		func() { s.remove(configMap("new", "2", "")) },
	} {
		s.put(configMap("new", "1", "nonsense: 1"))
		if len(s.problems) != 1 {
			t.Error("the problem waits for no leader")
		}
		if mend(); len(s.problems) != 0 {
			t.Errorf("a leader would tell %v", (<-s.problems).err)
		}
	}
}

// TestNoSettings wants a line that says so.
func TestNoSettings(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	newSettings(policy.NewCatalog(), []string{"new", "old"}, slog.New(slog.NewTextHandler(&text, nil))).started()
	if !strings.Contains(text.String(), "defaults are in force") || !strings.Contains(text.String(), "[new old]") {
		t.Errorf("log %q", text.String())
	}
}
