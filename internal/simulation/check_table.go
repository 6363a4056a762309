package simulation

import "regexp"

// Forms of names.
var (
	dnsName       = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,60}[a-z0-9])?$`)
	deviceName    = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,14}$`)
	netdevName    = regexp.MustCompile(`^enp([0-9]{1,3})s([0-9]{1,2})(?:f([0-9]))?(?:np[0-9]+)?$`)
	variableName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	kernelRelease = regexp.MustCompile(`^[0-9]+\.[0-9]+[a-zA-Z0-9_.+~-]{0,48}$`)
	pciAddress    = regexp.MustCompile(`^[0-9a-f]{4}:(0[4-9a-f]|[1-9a-f][0-9a-f]):[01][0-9a-f]\.[0-7]$`)
	resourceName  = regexp.MustCompile(`^[a-z0-9]+(\.[a-z0-9-]+)*$`)
	apiVersion    = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[0-9][a-z0-9]*$`)
	kindName      = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)
	uidForm       = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
)

const (
	wantDNS    = "1 to 62 small letters, digits, - and ."
	wantDevice = "1 to 15 letters, digits, _, . and -"
)

// speeds are those that a port can have, in Gb/s.
var speeds = []int{10, 25, 40, 50, 100, 200, 400, 800}

// laneNames are what InfiniBand calls the speed of one lane, by its Gb/s.
var laneNames = map[int]string{2: "SDR", 5: "DDR", 10: "QDR", 14: "FDR", 25: "EDR", 50: "HDR", 100: "NDR", 200: "XDR"}
