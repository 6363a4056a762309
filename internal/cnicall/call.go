// Package cnicall says how one CNI call goes over the agent's unix socket: a
// request, its answer, who asks and who serves. It knows what a call looks like
// and nothing of what it does.
//
// railhead-cni links it, so it is made of the standard library alone.
package cnicall

import "encoding/json"

// The verbs of CNI.
const (
	Add     = "ADD"
	Check   = "CHECK"
	Del     = "DEL"
	GC      = "GC"
	Status  = "STATUS"
	Version = "VERSION"
)

// The error codes of the CNI specification.
const (
	CodeVersion     uint = 1   // a CNI version that is not spoken
	CodeField       uint = 2   // a field of the configuration that is not known
	CodeContainer   uint = 3   // an unknown container; the runtime need not call DEL
	CodeEnvironment uint = 4   // an environment variable
	CodeIO          uint = 5   // reading or writing
	CodeDecode      uint = 6   // what cannot be decoded
	CodeConfig      uint = 7   // a configuration that is not valid
	CodeNamespace   uint = 8   // the network namespace
	CodeTryAgain    uint = 11  // something that passes
	CodeUnavailable uint = 50  // STATUS: no ADD can be served
	CodeLimited     uint = 51  // STATUS: nor may containers that are there be reached
	CodeInternal    uint = 999 // anything else
)

// Request is one call as the container runtime made it. Values of strings are
// valid UTF-8; what the runtime did not give is empty.
type Request struct {
	Command     string          `json:"command"`
	ContainerID string          `json:"containerID,omitempty"`
	NetNS       string          `json:"netns,omitempty"` // a path, as the runtime sees it
	IfName      string          `json:"ifName,omitempty"`
	Args        string          `json:"args,omitempty"`     // CNI_ARGS: KEY=value;KEY=value
	Path        string          `json:"path,omitempty"`     // CNI_PATH: directories of plugins, with colons between
	Programs    string          `json:"programs,omitempty"` // PATH of the runtime, by which plugins find programs such as nft
	Plugin      string          `json:"plugin,omitempty"`   // the name that the program was started by
	Config      json.RawMessage `json:"config,omitempty"`   // what stood on standard input
}

// Answer is what became of a call: an error, or what the program prints, in the
// CNI version that the configuration asks for. Verbs without a result answer the
// zero value.
type Answer struct {
	Output json.RawMessage `json:"output,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Error is an error of the CNI specification. Code is not 0.
type Error struct {
	Code    uint   `json:"code"`
	Msg     string `json:"msg"`
	Details string `json:"details,omitempty"`
}

func (e *Error) Error() string {
	if e.Details == "" {
		return e.Msg
	}
	return e.Msg + ": " + e.Details
}
