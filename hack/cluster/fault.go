package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"railhead/hack/cluster/driver"
)

// faultCommands break what a test wants broken, and mend it.
func faultCommands(at func() driver.Dir) []*cobra.Command {
	component := func(verb, short string) *cobra.Command {
		return orderCommand(at, verb+" MACHINE/COMPONENT", short, 1, func(args []string) (driver.Order, error) {
			machine, name, err := parseComponent(args[0])
			return driver.Order{Verb: verb, Machine: machine, Component: name}, err
		})
	}
	node := func(verb, short string) *cobra.Command {
		return orderCommand(at, verb+" NODE", short, 1, func(args []string) (driver.Order, error) {
			return driver.Order{Verb: verb, Machine: args[0]}, nil
		})
	}
	link := func(verb, short string) *cobra.Command {
		return orderCommand(at, verb+" NODE LINK", short, 2, func(args []string) (driver.Order, error) {
			return driver.Order{Verb: verb, Machine: args[0], Link: args[1]}, nil
		})
	}
	return []*cobra.Command{
		component("stop", "end a component, and leave it so"),
		component("kill", "kill -9 a component; what supervises it starts it again"),
		component("pause", "stop a component in its tracks, until resume"),
		component("resume", "let a paused component go on"),
		component("restart", "end a component and start it again; starts a stopped one"),
		node("crash", "take a node's power away"),
		node("boot", "start a node that crashed"),
		node("reboot", "crash and boot"),
		link("cut", "take the carrier of eth0 or of a rail (its number or netdev) away"),
		link("mend", "undo cut"),
		node("fill", "fill a node's disk"),
		node("free", "undo fill"),
	}
}

// parseComponent reads what names a component.
func parseComponent(word string) (machine, component string, err error) {
	machine, component, _ = strings.Cut(word, "/")
	if machine == "" || component == "" || strings.Contains(component, "/") {
		return "", "", fmt.Errorf("%q: want MACHINE/COMPONENT, as in node1/kubelet or fabric/etcd", word)
	}
	return machine, component, nil
}

// orderCommand makes a command that gives one order to the driver.
func orderCommand(at func() driver.Dir, use, short string, args int, order func([]string) (driver.Order, error)) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(args),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := order(args)
			if err != nil {
				return err
			}
			said, err := at().Give(cmd.Context(), o)
			if said != "" {
				fmt.Fprintln(cmd.OutOrStdout(), said)
			}
			return err
		},
	}
}
