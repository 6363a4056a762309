package kubetest

import "strings"

// place is where an object or a collection is.
type place struct {
	prefix    string // "/api/v1", "/apis/apps/v1"
	namespace string // "": none, or all
	resource  string // "pods"
	name      string // "": the collection
}

// Collection is the path of the collection of all namespaces that a path is in.
func Collection(path string) string {
	p := placeOf(path)
	return p.prefix + "/" + p.resource
}

// placeOf reads a path.
func placeOf(path string) place {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	count := 2
	if parts[0] == "apis" {
		count = 3
	}
	if len(parts) <= count { // what is served there
		return place{prefix: path}
	}
	p := place{prefix: "/" + strings.Join(parts[:count], "/")}
	parts = parts[count:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		p.namespace, parts = parts[1], parts[2:]
	}
	if p.resource = parts[0]; len(parts) > 1 {
		p.name = parts[1]
	}
	return p
}

// of is the place of an object in a collection; that of an object remains.
func (p place) of(o Object) place {
	if p.name != "" {
		return p
	}
	meta := Meta(o)
	p.name, _ = meta["name"].(string)
	if namespace, _ := meta["namespace"].(string); namespace != "" {
		p.namespace = namespace
	}
	return p
}

func (p place) isIn(collection place) bool {
	if collection.namespace == "" {
		p.namespace = ""
	}
	p.name = ""
	return p == collection
}

func (p place) String() string {
	path := p.prefix + "/"
	if p.namespace != "" {
		path += "namespaces/" + p.namespace + "/"
	}
	return path + p.resource + "/" + p.name
}

func (p place) version() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.prefix, "/apis/"), "/api/")
}

// kinds has the kind of each resource that a test may ask for.
var kinds = map[string]string{
	"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "configmaps": "ConfigMap", "events": "Event",
	"replicasets": "ReplicaSet", "deployments": "Deployment", "jobs": "Job", "cronjobs": "CronJob",
	"jobsets": "JobSet", "trainjobs": "TrainJob", "pytorchjobs": "PyTorchJob",
	"network-attachment-definitions": "NetworkAttachmentDefinition",
	"spiderippools":                  "SpiderIPPool", "spidersubnets": "SpiderSubnet", "spiderreservedips": "SpiderReservedIP",
	"spiderendpoints": "SpiderEndpoint", "spidermultusconfigs": "SpiderMultusConfig", "spidercoordinators": "SpiderCoordinator",
	"poolledgers": "PoolLedger", "addressleases": "AddressLease",
}

// kind is that of the objects there.
func (p place) kind() string {
	kind, ok := kinds[p.resource]
	if !ok {
		panic("kubetest: no kind is known of the resource " + p.resource + " in " + p.prefix)
	}
	return kind
}

// hasStatus says whether the status has a path of its own, so that creating and
// updating an object leaves it alone.
func (p place) hasStatus() bool { return p.resource == "addressleases" }
