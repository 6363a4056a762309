package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is how a verb prints its answer.
type format string

const (
	formatText format = "text"
	formatWide format = "wide"
	formatJSON format = "json"
	formatYAML format = "yaml"
)

// formatFlag is a pflag.Value that takes some of the formats.
type formatFlag struct {
	value   format
	allowed []format
}

func (f *formatFlag) String() string { return string(f.value) }

func (f *formatFlag) Type() string { return "format" }

func (f *formatFlag) Set(value string) error {
	if !slices.Contains(f.allowed, format(value)) {
		return fmt.Errorf("there is no format %q, there are %s", value, f.names())
	}
	f.value = format(value)
	return nil
}

func (f *formatFlag) names() string {
	names := make([]string, len(f.allowed))
	for i, a := range f.allowed {
		names[i] = string(a)
	}
	return strings.Join(names, ", ")
}

// addFormatFlag adds -o to a command; the first of the formats is the default.
func addFormatFlag(cmd *cobra.Command, allowed ...format) *formatFlag {
	f := &formatFlag{value: allowed[0], allowed: allowed}
	cmd.Flags().VarP(f, "output", "o", "how to print: "+f.names())
	return f
}

// printData prints data as JSON or YAML; both have the same field names.
func printData(w io.Writer, f format, data any) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return err
	}
	text := b.Bytes()
	if f == formatYAML {
		var err error
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
	}
	_, err := w.Write(text)
	return err
}

// printable writes what could move a terminal's cursor, or break a line or a
// column, as an escape: names come from the kernel, where a pod may have chosen
// them.
func printable(text string) string {
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}
