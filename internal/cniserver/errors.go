package cniserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"

	"github.com/containernetworking/cni/pkg/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"railhead/internal/cnicall"
	"railhead/internal/ipam/holder"
	"railhead/internal/ipam/selection"
)

// codedError is an error whose CNI code is known.
type codedError struct {
	code uint
	err  error
}

func (e *codedError) Error() string { return e.err.Error() }

func (e *codedError) Unwrap() error { return e.err }

// coded gives an error its CNI code; nil stays nil.
func coded(code uint, err error) error {
	if err == nil {
		return nil
	}
	return &codedError{code, err}
}

// configured is coded for what a configuration says, unless its code is known.
func configured(err error) error {
	var known *codedError
	if err == nil || errors.As(err, &known) {
		return err
	}
	return coded(cnicall.CodeConfig, err)
}

// podNamed is an error whose text names the pod.
type podNamed struct{ error }

func (e podNamed) Unwrap() error { return e.error }

// isPodNamed says whether an error names the pod already.
func isPodNamed(err error) bool {
	_, is := errors.AsType[podNamed](err)
	return is
}

// codeOf is the CNI code of an error: that which was given, that which another's
// plugin gave, or what the kind of error says.
func codeOf(err error) uint {
	var known *codedError
	if errors.As(err, &known) {
		return known.code
	}
	var theirs *types.Error
	if errors.As(err, &theirs) && theirs.Code != 0 {
		return theirs.Code
	}
	if passes(err) {
		return cnicall.CodeTryAgain
	}
	return cnicall.CodeInternal
}

// passes tells whether the same call may succeed a little later.
func passes(err error) bool {
	var short *holder.ShortError
	if errors.As(err, &short) {
		return short.Waiting
	}
	for _, known := range []error{
		holder.ErrNotReady, holder.ErrDisk, selection.ErrNotYet, context.DeadlineExceeded, context.Canceled,
		syscall.ENOSPC, syscall.EDQUOT, errInterrupted,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) || isNetwork(err)
}

// isNetwork tells errors of a connection that could not be made or broke.
func isNetwork(err error) bool {
	var temporary interface{ Timeout() bool }
	return errors.As(err, &temporary) && !errors.Is(err, fs.ErrNotExist) && temporary.Timeout() ||
		errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET)
}

// several are errors of which people need not read all.
type several []error

// severalShown is how many of several errors people are shown.
const severalShown = 10

// join makes one error of those that are not nil, or nil.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		return nil
	}
	return several(errs)
}

func (s several) Error() string {
	text := errors.Join(s[:min(len(s), severalShown)]...).Error()
	if more := len(s) - severalShown; more > 0 {
		text += fmt.Sprintf("\nand %d more errors", more)
	}
	return text
}

func (s several) Unwrap() []error { return s }

// answerOf is an error as the runtime is told of it.
func answerOf(err error) cnicall.Answer {
	return cnicall.Answer{Error: &cnicall.Error{Code: codeOf(err), Msg: err.Error()}}
}

// errInterrupted is of an ADD that a DEL of the same sandbox ended.
var errInterrupted = errors.New("the runtime asked for DEL of the same sandbox meanwhile")
