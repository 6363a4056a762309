package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"railhead/hack/cluster/driver"
	"railhead/hack/cluster/image"
)

func statusCommand(at func() driver.Dir) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "show machines, their components and links",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := at().Status(cmd.Context())
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), s)
		},
	}
}

func printStatus(out io.Writer, s *driver.Status) error {
	fmt.Fprintf(out, "cluster in %s, up since %s; KUBECONFIG=%s\n\n", s.Dir, s.Began.Format(time.DateTime), s.Dir.Kubeconfig())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MACHINE\tPID\tADDRESSES\tCOMPONENTS\tLINKS")
	for _, m := range s.Machines {
		var components []string
		for _, c := range m.Services {
			components = append(components, c.Name+" "+string(c.State))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", m.Name, pid(m), strings.Join(m.Addresses, ","), strings.Join(components, ", "), links(m))
	}
	return w.Flush()
}

func pid(m driver.Machine) string {
	if m.PID == 0 {
		return "off"
	}
	return strconv.Itoa(m.PID)
}

// links says what is wrong with a machine's links, if anything is.
func links(m driver.Machine) string {
	if len(m.Faults) == 0 {
		return "good"
	}
	return strings.Join(m.Faults, ", ")
}

func kubectlCommand(at func() driver.Dir) *cobra.Command {
	return &cobra.Command{
		Use:                "kubectl [ARGUMENT…]",
		Short:              "run kubectl as the administrator of the cluster",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, rest := dirFlag(at(), args)
			if _, err := os.Stat(dir.Kubeconfig()); err != nil {
				return fmt.Errorf("%s: %w", dir, driver.ErrNotRunning)
			}
			program, err := driver.Program(cmd.Context(), "kubectl")
			if err != nil {
				return err
			}
			return syscall.Exec(program, append([]string{"kubectl"}, rest...), append(os.Environ(), "KUBECONFIG="+dir.Kubeconfig()))
		},
	}
}

// dirFlag takes our one flag out of the arguments of kubectl, which are not
// ours to read, when it comes first.
func dirFlag(dir driver.Dir, args []string) (driver.Dir, []string) {
	if len(args) >= 2 && args[0] == "--dir" {
		return driver.At(args[1]), args[2:]
	}
	if len(args) >= 1 {
		if d, ok := strings.CutPrefix(args[0], "--dir="); ok {
			return driver.At(d), args[1:]
		}
	}
	return dir, args
}

func execCommand(at func() driver.Dir) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec MACHINE [--] COMMAND [ARGUMENT…]",
		Short: "run a command on a machine, as root there",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			command := commandOf(args)
			if len(command) == 0 {
				return errors.New("no command after --")
			}
			s, err := at().Status(cmd.Context())
			if err != nil {
				return err
			}
			m, err := running(s, args[0])
			if err != nil {
				return err
			}
			nsenter, err := exec.LookPath("nsenter")
			if err != nil {
				return err
			}
			return syscall.Exec(nsenter, append([]string{"nsenter", "-t", strconv.Itoa(m.PID), "-a", "--"}, command...), environment())
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the machine are the command's
	return cmd
}

// commandOf is the command in the arguments of exec.
func commandOf(args []string) []string {
	if args[1] == "--" {
		return args[2:]
	}
	return args[1:]
}

// environment is that of a command on a machine: paths and settings of the
// host mean nothing there.
func environment() []string {
	env := []string{driver.Path, "HOME=/root"}
	if term, ok := os.LookupEnv("TERM"); ok {
		env = append(env, "TERM="+term)
	}
	return env
}

// running finds a machine that is on.
func running(s *driver.Status, name string) (driver.Machine, error) {
	i := slices.IndexFunc(s.Machines, func(m driver.Machine) bool { return m.Name == name })
	if i < 0 {
		var names []string
		for _, m := range s.Machines {
			names = append(names, m.Name)
		}
		return driver.Machine{}, fmt.Errorf("machine %q: want one of %s", name, strings.Join(names, ", "))
	}
	if s.Machines[i].PID == 0 {
		return driver.Machine{}, fmt.Errorf("machine %s is off: boot it", name)
	}
	return s.Machines[i], nil
}

func logsCommand(at func() driver.Dir) *cobra.Command {
	return &cobra.Command{
		Use:   "logs [MACHINE/COMPONENT]",
		Short: "print what a component said; without one, list those that said something",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return listLogs(cmd.OutOrStdout(), at())
			}
			machine, component, err := parseComponent(args[0])
			if err != nil {
				return err
			}
			f, err := os.Open(at().Log(machine, component))
			if err != nil {
				return errors.Join(err, listLogs(cmd.ErrOrStderr(), at()))
			}
			defer f.Close()
			_, err = io.Copy(cmd.OutOrStdout(), f)
			return err
		},
	}
}

func listLogs(out io.Writer, dir driver.Dir) error {
	files, err := filepath.Glob(dir.Log("*", "*"))
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s: no logs are there", dir)
	}
	for _, f := range files {
		machine := filepath.Base(filepath.Dir(filepath.Dir(f)))
		fmt.Fprintf(out, "%s/%s\n", machine, strings.TrimSuffix(filepath.Base(f), ".log"))
	}
	return nil
}

func loadCommand(at func() driver.Dir) *cobra.Command {
	return orderCommand(at, "load IMAGE", "import an image into every node: a tar file, or railhead, tools or pause, built anew", 1, func(args []string) (driver.Order, error) {
		if _, ok := image.Named(args[0]); ok {
			return driver.Order{Verb: "load", Path: args[0]}, nil
		}
		path, err := filepath.Abs(args[0]) // the driver is somewhere else
		return driver.Order{Verb: "load", Path: path}, err
	})
}

func forwardCommand(at func() driver.Dir) *cobra.Command {
	return orderCommand(at, "forward MACHINE ADDRESS:PORT", "make an address that a machine reaches a port of 127.0.0.1, and print it", 2, func(args []string) (driver.Order, error) {
		return driver.Order{Verb: "forward", Machine: args[0], Address: args[1]}, nil
	})
}
