package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// largestText is what fits a UDP packet on any link.
const largestText = 1200

// echoCommand is the verb that asks an echo server of a network, tcp or udp.
func echoCommand(network string) *cobra.Command {
	var timeout time.Duration
	text := "hello"
	cmd := &cobra.Command{
		Use:   network + " HOST:PORT",
		Short: "Send a text to a " + strings.ToUpper(network) + " echo server and wait for it",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return echo(ctx, cmd.OutOrStdout(), network, args[0], text)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "when to give up")
	cmd.Flags().StringVar(&text, "text", text, fmt.Sprintf("what to send, at most %d bytes", largestText))
	return cmd
}

// echo sends a text, wants the same back and prints how long that took and from which address it was asked.
func echo(ctx context.Context, out io.Writer, network, address, text string) error {
	if len(text) == 0 || len(text) > largestText {
		return fmt.Errorf("text of %d bytes: want 1 to %d", len(text), largestText)
	}
	start := time.Now()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	if _, err := conn.Write([]byte(text)); err != nil {
		return err
	}
	answer := make([]byte, len(text))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return fmt.Errorf("answer of %s %s: %w", network, address, err)
	}
	if string(answer) != text {
		return fmt.Errorf("answer of %s %s: %q instead of %q", network, address, answer, text)
	}
	fmt.Fprintf(out, "echo from %s to %s in %s\n", conn.RemoteAddr(), conn.LocalAddr(), time.Since(start).Round(time.Microsecond))
	return nil
}
