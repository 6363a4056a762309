package podresources

import (
	"strings"

	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// holder is the pod that was given a device.
type holder struct {
	namespace, name string
	isShared        bool // others were given it too
}

// holders returns, by PCI address, which pods the kubelet gave devices to.
// Devices that are not named by a PCI address, as those of shared device
// plugins are, tell nothing and are left out.
func holders(answer *api.ListPodResourcesResponse) map[string]holder {
	held := map[string]holder{}
	for _, pod := range answer.GetPodResources() {
		h := holder{namespace: pod.GetNamespace(), name: pod.GetName()}
		for _, container := range pod.GetContainers() {
			for _, devices := range container.GetDevices() {
				for _, id := range devices.GetDeviceIds() {
					give(held, id, h)
				}
			}
			for _, claim := range container.GetDynamicResources() {
				giveClaim(held, claim, h)
			}
		}
	}
	return held
}

// giveClaim gives the devices of a resource claim. Drivers name a function in
// the device, where only dashes are allowed, or in the CDI device.
func giveClaim(held map[string]holder, claim *api.DynamicResource, h holder) {
	for _, resource := range claim.GetClaimResources() {
		h := h
		h.isShared = resource.GetShareId() != ""
		give(held, resource.GetDeviceName(), h)
		for _, device := range resource.GetCdiDevices() {
			give(held, device.GetName(), h)
		}
	}
}

// give gives the function that a name has the address of, if it has one.
func give(held map[string]holder, name string, h holder) {
	address, ok := pciAddress(name)
	if !ok {
		return
	}
	if before, ok := held[address]; ok && (before.namespace != h.namespace || before.name != h.name || before.isShared) {
		h.isShared = true
	}
	held[address] = h
}

// pciAddress finds the address of a PCI function at the end of a device's name:
// 0000:17:00.1 alone, or behind a prefix that ends with a sign that is neither
// letter nor digit, with dashes for its signs or not: pci-0000-17-00-1,
// vendor.com/vf=0000:17:00.1.
func pciAddress(name string) (string, bool) {
	const form = "0000:17:00.1"
	name = strings.ToLower(name)
	start := len(name) - len(form)
	if start < 0 || start > 0 && isAlphanumeric(name[start-1]) {
		return "", false
	}
	address := []byte(name[start:])
	isDashed := address[4] == '-'
	for i, c := range []byte(form) {
		switch {
		case isAlphanumeric(c):
			if !isHexDigit(address[i]) {
				return "", false
			}
		case isDashed && address[i] == '-':
			address[i] = c
		case isDashed || address[i] != c:
			return "", false
		}
	}
	return string(address), address[len(form)-1] <= '7'
}

func isAlphanumeric(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }

func isHexDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
