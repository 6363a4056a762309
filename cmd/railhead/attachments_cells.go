package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"railhead/internal/attach/record"
	"railhead/internal/attach/routing"
)

// fullName is "namespace/name" of the pod.
func (v *attachmentView) fullName() string {
	if v.Namespace == "" && v.Name == "" {
		return ""
	}
	return v.Namespace + "/" + v.Name
}

// title names a network: its NetworkAttachmentDefinition, or else its CNI name.
func (n *networkView) title() string { return cmp.Or(n.NAD, n.Name) }

// shortID is as much of a sandbox's ID as people need.
func shortID(id string) string {
	const enough = 12
	return id[:min(len(id), enough)]
}

// joinedOf is what each of some values has, in one cell.
func joinedOf[T any](values []T, of func(T) []string) string {
	var list []string
	for _, v := range values {
		list = append(list, of(v)...)
	}
	return strings.Join(list, ",")
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// age is how long ago something was, in its two largest units.
func age(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	const day = 24 * time.Hour
	d := max(now.Sub(at), 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// took is a duration to three digits or so.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// number is nothing for 0.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func tableCell(table uint32) string {
	if table == routing.TableMain {
		return "main"
	}
	return strconv.FormatUint(uint64(table), 10)
}

func destinationCell(r routing.Route) string {
	if r.Dst.Bits() == 0 {
		return "default"
	}
	return r.Dst.String()
}

func addrCell(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

func fromCell(r ruleRow) string {
	if !r.From.IsValid() {
		return "all"
	}
	return r.From.String()
}

func markCell(r ruleRow) string {
	if r.Mask == 0 {
		return ""
	}
	return fmt.Sprintf("%#x/%#x", r.Mark, r.Mask)
}

// checkCell says how a check came out.
func checkCell(c record.Check) string {
	switch {
	case c.Error != "":
		return c.Error
	case !c.OK:
		return "failed"
	case c.Kind == record.CheckConflict:
		return "nobody else has it"
	}
	return "answers"
}
