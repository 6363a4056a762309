package main

import (
	"context"
	"fmt"
	"strings"
)

// look is something to look at: how, as a user would, and what is seen.
type look struct {
	title   string
	command string                 // to be typed; empty: there is none
	answer  func() (string, error) // waits for it
}

// looks prints what there is to see.
func (c *cluster) looks(all []look) error {
	for _, l := range all {
		text, err := l.answer()
		if err != nil {
			return fmt.Errorf("%s: %s: %w", l.title, l.command, err)
		}
		fmt.Fprintf(c.out, "\n# %s\n\n", l.title)
		if l.command != "" {
			fmt.Fprintf(c.out, "$ %s\n", l.command)
		}
		fmt.Fprint(c.out, text)
	}
	return nil
}

// byKubectl looks by kubectl.
func (c *cluster) byKubectl(ctx context.Context, title string, args ...string) look {
	return look{title, typed("kubectl", args), func() (string, error) { return c.run(ctx, args...) }}
}

// byAgent looks by railhead in the pod of an agent.
func (c *cluster) byAgent(ctx context.Context, title, agent string, args ...string) look {
	return c.byKubectl(ctx, title, append([]string{"exec", "-n", agentNamespace, agent, "--", agentProgram}, args...)...)
}

// byRailhead looks by a verb of the command line.
func (c *cluster) byRailhead(ctx context.Context, title string, args ...string) look {
	return look{title, typed("go run ./cmd/railhead", args), func() (string, error) { return c.verb(ctx, args...) }}
}

// begin begins to look at once.
func begin(l look) look {
	var text string
	var err error
	done := make(chan struct{})
	say := l.answer
	go func() {
		defer close(done)
		text, err = say()
	}()
	l.answer = func() (string, error) {
		<-done
		return text, err
	}
	return l
}

// typed is a command line as a shell takes it.
func typed(name string, args []string) string {
	words := []string{name}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " $;|&<>(){}*?\"`\\\n") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}
