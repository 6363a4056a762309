package policy

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Review is what the rules say of one object. The zero value accepts it.
type Review struct {
	// Errors are why it is refused: path, value, and what would be accepted.
	Errors field.ErrorList
	// Warnings are what was understood otherwise than it was written, or has no effect.
	Warnings []string
}

// OK says whether the object is accepted.
func (r Review) OK() bool { return len(r.Errors) == 0 }

// maxMessage is how many bytes the message of a condition may have.
const maxMessage = 32 << 10

// Message is all errors in one line, as many as the message of a condition has
// room for.
func (r Review) Message() string {
	var all []string
	for _, e := range r.Errors {
		all = append(all, e.Error())
	}
	return Beginning(strings.Join(all, "; "), maxMessage)
}

// refuse adds why the value at a path is refused.
func (r *Review) refuse(path *field.Path, value any, format string, args ...any) {
	r.Errors = append(r.Errors, field.Invalid(path, value, fmt.Sprintf(format, args...)))
}

// forbid adds why a path may not be written, or not now.
func (r *Review) forbid(path *field.Path, format string, args ...any) {
	r.Errors = append(r.Errors, field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// warn adds a warning about the value at a path.
func (r *Review) warn(path *field.Path, format string, args ...any) {
	r.Warnings = append(r.Warnings, path.String()+": "+fmt.Sprintf(format, args...))
}

// add takes over what another review says.
func (r *Review) add(other Review) {
	r.Errors = append(r.Errors, other.Errors...)
	r.Warnings = append(r.Warnings, other.Warnings...)
}
