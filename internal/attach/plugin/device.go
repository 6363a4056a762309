package plugin

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// pciAddress wants the address of a PCI function, with or without a domain.
func pciAddress(text string) (string, error) {
	lower := strings.ToLower(text)
	if ok, err := regexp.MatchString(`^([0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]$`, lower); err != nil || !ok {
		return "", badField("pciBusID", text, "the address of a PCI function, such as 0000:3b:00.2")
	}
	if strings.Count(lower, ":") == 1 {
		lower = "0000:" + lower
	}
	return lower, nil
}

// kernelPath wants a directory of a device below /sys/devices.
func kernelPath(text string) (string, error) {
	const below = "/sys/devices/"
	if clean := path.Clean(text); strings.HasPrefix(clean, below) && clean == strings.TrimSuffix(text, "/") {
		return clean, nil
	}
	return "", badField("kernelpath", text, fmt.Sprintf("a directory below %s, such as %spci0000:3a/0000:3a:00.0/0000:3b:00.2", below, below))
}
