package annotation

// elementKeys are those of an element of the JSON form: the keys of the standard,
// deviceID of Multus, and what that called "interface" before 3.2 and still reads.
var elementKeys = []string{
	"name", "namespace", "interface", "ips", "mac", "infiniband-guid", "default-route", "portMappings", "bandwidth",
	"cni-args", "ipam-claim-reference", "deviceID", "interfaceRequest",
}

// The keys of what is in an element.
var (
	portMappingKeys = []string{"hostPort", "containerPort", "protocol", "hostIP"}
	bandwidthKeys   = []string{"ingressRate", "ingressBurst", "egressRate", "egressBurst"}
)
