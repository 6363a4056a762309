package counters

import (
	"errors"
	"fmt"
)

// ReadError is a question about a device that failed.
type ReadError struct {
	Source   string // who was asked: "rdma", "ethtool", "link", "devlink", "sysfs"
	Question string // what was asked, the same each time; empty where Source could not be asked at all
	Err      error  // of the kernel package, which names object and question
}

func (e *ReadError) Error() string { return fmt.Sprintf("%s: %v", e.Source, e.Err) }

// Unwrap returns Err.
func (e *ReadError) Unwrap() error { return e.Err }

// blame makes an error that of a question, unless it says itself which part of
// the question failed.
func blame(source, question string, err error) error {
	if _, ok := errors.AsType[*ReadError](err); ok {
		return err
	}
	return &ReadError{Source: source, Question: question, Err: err}
}
