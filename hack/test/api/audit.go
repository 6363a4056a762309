package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditPolicy has the API server log every write once it is answered.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- {level: Metadata, verbs: [create, update, patch, delete, deletecollection]}
- {level: None}
`

// Write is a request that the API server logged.
type Write struct {
	User, UserAgent string
	Groups          []string
	Verb            string
	Object          string // resource/namespace/name, and /subresource
	Code            int
	Time            time.Time // when it was answered
	// Webhooks are the mutating webhooks that were called.
	Webhooks []string
}

// Done says whether the write took place.
func (w Write) Done() bool { return w.Code >= 200 && w.Code < 300 }

func (w Write) String() string {
	return fmt.Sprintf("%s %s %s by %s: %d", w.Time.Format(time.StampMilli), w.Verb, w.Object, w.User, w.Code)
}

// Counts are how often objects were written, by verb and object.
type Counts map[string]int

// CountWrites counts what took place.
func CountWrites(writes []Write) Counts {
	counts := Counts{}
	for _, w := range writes {
		if w.Done() {
			counts[w.Verb+" "+w.Object]++
		}
	}
	return counts
}

// Writes are the requests of a user or a group since the test began, in the order
// they were answered, or of all if that is empty. A request that was answered
// before the call is among them.
func (s *Server) Writes(tb testing.TB, who string) []Write {
	tb.Helper()
	marker := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "audit-"}}
	if err := s.Create(tb.Context(), marker); err != nil {
		tb.Fatal(err)
	}
	if err := s.Delete(tb.Context(), marker); err != nil {
		tb.Fatal(err)
	}
	isMarker := func(w Write) bool { return w.Verb == "delete" && w.Object == "configmaps/default/"+marker.Name }
	var writes []Write
	Eventually(tb, func() string {
		all, err := s.audit.read()
		if err != nil {
			tb.Fatal(err)
		}
		writes = all[s.since:]
		if !slices.ContainsFunc(writes, isMarker) {
			return "the audit log's marker " + marker.Name
		}
		return ""
	})
	return slices.DeleteFunc(slices.Clone(writes), func(w Write) bool {
		return who != "" && w.User != who && !slices.Contains(w.Groups, who)
	})
}

// auditEvent is what counts here of an audit.k8s.io/v1 Event.
type auditEvent struct {
	Verb string `json:"verb"`
	User struct {
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource, Namespace, Name, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp metav1.MicroTime  `json:"stageTimestamp"`
	Annotations    map[string]string `json:"annotations"`
}

// auditLog is the log of an API server, of which each line is read once.
type auditLog struct {
	file string

	mu     sync.Mutex
	offset int64
	writes []Write
}

// read returns all writes so far.
func (l *auditLog) read() ([]Write, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.NewSectionReader(file, l.offset, math.MaxInt64-l.offset))
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1] // a line may be half written
	for line := range bytes.Lines(data) {
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log: %w: %s", err, line)
		}
		l.writes = append(l.writes, e.write())
	}
	l.offset += int64(len(data))
	return slices.Clip(l.writes), nil
}

func (e *auditEvent) write() Write {
	object := e.ObjectRef.Resource + "/" + e.ObjectRef.Namespace + "/" + e.ObjectRef.Name
	if e.ObjectRef.Subresource != "" {
		object += "/" + e.ObjectRef.Subresource
	}
	w := Write{
		User: e.User.Username, Groups: e.User.Groups, UserAgent: e.UserAgent, Verb: e.Verb, Object: object,
		Code: e.ResponseStatus.Code, Time: e.StageTimestamp.Time,
	}
	for key, value := range e.Annotations {
		if strings.HasPrefix(key, "mutation.webhook.admission.k8s.io/") {
			w.Webhooks = append(w.Webhooks, value)
		}
	}
	return w
}

// Eventually waits until nothing is missing any more.
func Eventually(tb testing.TB, missing func() string) {
	tb.Helper()
	var last string
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = missing(); last == "" {
			return
		}
	}
	tb.Fatalf("still missing after %s: %s", Patience, last)
}
