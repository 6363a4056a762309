package standin

import (
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// event tells whoever describes the pod what went wrong, if the API server takes it.
func (l *life) event(reason string, why error) {
	now := meta.Now()
	_, err := l.fleet.client.CoreV1().Events(l.namespace).Create(l.all, &core.Event{
		ObjectMeta:     meta.ObjectMeta{GenerateName: l.name + ".", Namespace: l.namespace},
		InvolvedObject: core.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: l.namespace, Name: l.name, UID: l.uid},
		Reason:         reason, Message: why.Error(), Type: core.EventTypeWarning,
		Source:         core.EventSource{Component: "standin", Host: l.pod.node},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, meta.CreateOptions{})
	if err != nil && l.all.Err() == nil {
		l.fleet.Log.LogAttrs(l.all, slog.LevelWarn, "event not told", slog.String("pod", l.String()), slog.String("reason", reason), slog.Any("error", err))
	}
}

// levelOf is how loud an attempt that failed is: the first few are nothing, as when the API server has only just
// started.
func levelOf(pause time.Duration) slog.Level {
	if pause < time.Second {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// attrs is what is logged of an attempt that failed.
func attrs(what, whose string, err error, pause time.Duration) []slog.Attr {
	return []slog.Attr{slog.String("what", what), slog.String("of", whose), slog.Any("error", err), slog.Duration("after", pause)}
}
