package box

import (
	"fmt"
	"os"
)

// step is one thing to be done for a machine to be.
type step struct {
	name string
	do   func() error
}

// sabotage makes one step go wrong, to show that nothing is left then. The
// zero value leaves all alone.
type sabotage struct {
	Step string   `json:"step,omitempty"`
	How  breakage `json:"how,omitempty"`
}

type breakage string

const (
	breakFail  breakage = "fail"  // the step fails
	breakCrash breakage = "crash" // the process ends without a word
	breakHang  breakage = "hang"  // the step takes for ever
)

// run takes steps until one fails, and says which.
func (s sabotage) run(steps []step) error {
	for _, step := range steps {
		do := step.do
		if step.name == s.Step {
			do = s.spoil
		}
		if err := do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// spoil stands for the step that goes wrong.
func (s sabotage) spoil() error {
	switch s.How {
	case breakCrash:
		os.Exit(3)
	case breakHang:
		fmt.Fprintln(os.Stderr, "hanging")
		select {}
	}
	return fmt.Errorf("sabotage %q", s.How)
}
