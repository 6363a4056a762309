package box

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// State is what a service does.
type State string

// States of a service.
const (
	Running State = "running"
	Paused  State = "paused"  // by SIGSTOP
	Waiting State = "waiting" // to be started again after it ended by itself
	Ended   State = "ended"   // by itself
	Stopped State = "stopped" // on order
)

// Status is how a service is at one time.
type Status struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`  // as the machine numbers it
	Restarts int       `json:"restarts"`       // how often it was started again after it ended by itself
	Since    time.Time `json:"since"`          // of the state
	Exit     string    `json:"exit,omitempty"` // how it ended last: "exit status 1", "signal: killed"
}

// describe says how a process ended, as the shell does.
func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// A service that ends by itself is started again after a pause that doubles
// each time, and begins anew once the service has run for a while.
const (
	restartFirst  = 100 * time.Millisecond
	restartMost   = 5 * time.Second
	restartForget = 10 * time.Second
)

// nextPause is the pause before a service is started again, given the last
// pause and how long the service ran after it.
func nextPause(last, ran time.Duration) time.Duration {
	if last == 0 || ran >= restartForget {
		return restartFirst
	}
	return min(2*last, restartMost)
}
