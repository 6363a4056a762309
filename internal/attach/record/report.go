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
	// Interfaces, Routes and Rules are what the pod got; see [Describe].
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
		Checks     []Check     `json:"checks,omitempty"`
		Steps      []Step      `json:"steps,omitempty"`
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

// MarshalJSON writes the form of the annotation.
func (r Report) MarshalJSON() ([]byte, error) {
	return json.Marshal(reportJSON{
		Version: reportVersion, At: r.At, Took: duration(r.Took), Interfaces: r.Interfaces, Routes: r.Routes, Rules: r.Rules,
		Checks: r.Checks, Steps: r.Steps, Notes: r.Notes,
	})
}

// UnmarshalJSON reads the form of the annotation, also of a later release as far
// as it says the same.
func (r *Report) UnmarshalJSON(text []byte) error {
	var read reportJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*r = Report{
		At: read.At, Took: time.Duration(read.Took), Interfaces: read.Interfaces, Routes: read.Routes, Rules: read.Rules,
		Checks: read.Checks, Steps: read.Steps, Notes: read.Notes,
	}
	return nil
}

// MarshalJSON writes the duration as a text.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepJSON{Name: s.Name, Took: duration(s.Took)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Step) UnmarshalJSON(text []byte) error {
	var read stepJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*s = Step{Name: read.Name, Took: time.Duration(read.Took)}
	return nil
}

// MarshalJSON writes the duration as a text, and what is as it should be not at
// all: a pod has many of them.
func (c Check) MarshalJSON() ([]byte, error) {
	return json.Marshal(checkJSON{
		Interface: c.Interface, Kind: c.Kind, Address: c.Address, MAC: c.MAC, Failed: !c.OK,
		Waited: duration(c.Waited), Tries: c.Tries, Error: c.Error,
	})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Check) UnmarshalJSON(text []byte) error {
	var read checkJSON
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	*c = Check{
		Interface: read.Interface, Kind: read.Kind, Address: read.Address, MAC: read.MAC, OK: !read.Failed,
		Waited: time.Duration(read.Waited), Tries: read.Tries, Error: read.Error,
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
