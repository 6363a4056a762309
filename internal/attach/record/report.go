package record

import (
	"encoding/json"
	"fmt"
	"time"
)

// Annotation is the pod's that has the Report of its attachment as JSON.
const Annotation = "railhead.io/attachment"

// EventReason is that of the Event about a pod that could not be attached.
const EventReason = "RailheadAttachFailed"

// Report is how an attachment went, for people. It is also the value of the
// pod's annotation [Annotation]; its durations are texts there, such as "1.5ms".
type Report struct {
	At   time.Time     // when it began
	Took time.Duration // until the answer
	// Interfaces, Routes and Rules are what the pod got. The node's record has them in
	// its Plan; see [Attachment.Whole].
	Interfaces []Interface
	Routes     []string // as ip route writes them, those of several tables in one
	Rules      []string // as ip rule writes them
	Checks     []Check
	Steps      []Step
	Notes      []string
}

// Interface is one interface of a pod.
type Interface struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind,omitempty"`   // "" where another's plugin made it
	Parent    string   `json:"parent,omitempty"` // netdev of the node below it
	MAC       string   `json:"mac,omitempty"`
	MTU       int      `json:"mtu,omitempty"`   // bytes
	Table     int      `json:"table,omitempty"` // its own for routes; 0: none
	Addresses []string `json:"addresses,omitempty"`
	Gateways  []string `json:"gateways,omitempty"`
}

// Step is one step and its time.
type Step struct {
	Name string
	Took time.Duration
}

// CheckKind is what was asked on the wire.
type CheckKind string

// Kinds of checks.
const (
	CheckGateway  CheckKind = "gateway"
	CheckConflict CheckKind = "conflict"
)

// Check is one question on the wire and its answer.
type Check struct {
	Interface string
	Kind      CheckKind
	Address   string
	MAC       string // who answered, "" if nobody did
	OK        bool
	Waited    time.Duration
	Tries     int
	Error     string
}

// duration is written as a text, to a microsecond.
type duration time.Duration

func (d duration) MarshalText() ([]byte, error) {
	return []byte(time.Duration(d).Round(time.Microsecond).String()), nil
}

func (d *duration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	*d = duration(read)
	return err
}

// The forms of JSON.
type (
	reportJSON struct {
		Version    int         `json:"version"`
		At         time.Time   `json:"at,omitzero"`
		Took       duration    `json:"took"`
		Interfaces []Interface `json:"interfaces,omitempty"`
		Routes     []string    `json:"routes,omitempty"`
		Rules      []string    `json:"rules,omitempty"`
		Checks     []checkJSON `json:"checks,omitempty"`
		Steps      []stepJSON  `json:"steps,omitempty"`
		Notes      []string    `json:"notes,omitempty"`
	}
	stepJSON struct {
		Name string   `json:"name"`
		Took duration `json:"took"`
	}
	checkJSON struct {
		Interface string    `json:"interface"`
		Kind      CheckKind `json:"kind"`
		Address   string    `json:"address"`
		MAC       string    `json:"mac,omitempty"`
		Failed    bool      `json:"failed,omitempty"`
		Waited    duration  `json:"waited"`
		Tries     int       `json:"tries,omitempty"`
		Error     string    `json:"error,omitempty"`
	}
)

// reportVersion is that of the form of JSON.
const reportVersion = 1

// MarshalJSON writes the form of the annotation. Of checks, what is as it should be
// is not written at all: a pod has many of them.
func (r Report) MarshalJSON() ([]byte, error) {
	written := reportJSON{
		Version: reportVersion, At: r.At, Took: duration(r.Took), Interfaces: r.Interfaces, Routes: r.Routes, Rules: r.Rules, Notes: r.Notes,
	}
	for _, c := range r.Checks {
		written.Checks = append(written.Checks, checkJSON{
			Interface: c.Interface, Kind: c.Kind, Address: c.Address, MAC: c.MAC, Failed: !c.OK,
			Waited: duration(c.Waited), Tries: c.Tries, Error: c.Error,
		})
	}
	for _, s := range r.Steps {
		written.Steps = append(written.Steps, stepJSON{Name: s.Name, Took: duration(s.Took)})
	}
	return json.Marshal(written)
}

// UnmarshalJSON reads the form of the annotation, also of a later release as far
// as it says the same.
func (r *Report) UnmarshalJSON(text []byte) error {
	var read reportJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*r = Report{
		At: read.At, Took: time.Duration(read.Took), Interfaces: read.Interfaces, Routes: read.Routes, Rules: read.Rules, Notes: read.Notes,
	}
	for _, c := range read.Checks {
		r.Checks = append(r.Checks, Check{
			Interface: c.Interface, Kind: c.Kind, Address: c.Address, MAC: c.MAC, OK: !c.Failed,
			Waited: time.Duration(c.Waited), Tries: c.Tries, Error: c.Error,
		})
	}
	for _, s := range read.Steps {
		r.Steps = append(r.Steps, Step{Name: s.Name, Took: time.Duration(s.Took)})
	}
	return nil
}

// ParseAnnotation reads a value of [Annotation].
func ParseAnnotation(text string) (Report, error) {
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Report{}, fmt.Errorf("annotation %s is no report of an attachment: %w", Annotation, err)
	}
	return r, nil
}
