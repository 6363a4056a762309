package v2beta1

// Finalizer keeps pools, subnets and endpoints until what they hold is free.
const Finalizer = "spiderpool.spidernet.io"

// Annotations of a SpiderMultusConfig.
const (
	// AnnotationNADName names the NetworkAttachmentDefinition; absent, it has the name of the SpiderMultusConfig.
	AnnotationNADName = "multus.spidernet.io/cr-name"
	// AnnotationCNIVersion is the cniVersion of the NetworkAttachmentDefinition.
	AnnotationCNIVersion = "multus.spidernet.io/cni-version"
	// AnnotationCNIConfigName is the CNI network name, by default the name of the NetworkAttachmentDefinition.
	AnnotationCNIConfigName = "cni.spidernet.io/cniconfig-name"
)

// Annotations of a SpiderMultusConfig, and of a pod or its namespace: pods get
// all networks with the same value. The pod's own annotation wins over its
// namespace's, the first key over the second.
const (
	AnnotationInjectRDMA    = "cni.spidernet.io/rdma-resource-inject"
	AnnotationInjectNetwork = "cni.spidernet.io/network-resource-inject"
)

// LabelInjection marks a namespace that carries one of the two inject
// annotations, since webhooks select namespaces by label. Admission sets it in
// the write that sets the annotation.
const LabelInjection = "railhead.io/injection"

// Annotations of a pod (JSON unless said otherwise) that choose pools and
// routes.
const (
	AnnotationSubnets = "ipam.spidernet.io/subnets" // [{"interface","ipv4":[],"ipv6":[]}]
	AnnotationSubnet  = "ipam.spidernet.io/subnet"  // {"ipv4":[],"ipv6":[]}
	AnnotationPools   = "ipam.spidernet.io/ippools" // [{"interface","ipv4":[],"ipv6":[],"cleangateway"}]
	AnnotationPool    = "ipam.spidernet.io/ippool"  // {"ipv4":[],"ipv6":[]}
	AnnotationRoutes  = "ipam.spidernet.io/routes"  // [{"dst","gw"}]
	// AnnotationPoolNumber is how many addresses an application's own pool has: "N", or "+N" beyond its replicas.
	AnnotationPoolNumber = "ipam.spidernet.io/ippool-ip-number"
	// AnnotationPoolReclaim is whether an application's own pool goes with it: "true" (default) or "false".
	AnnotationPoolReclaim = "ipam.spidernet.io/ippool-reclaim"
	// AnnotationDefaultRouteNIC is the interface that has the pod's default route.
	AnnotationDefaultRouteNIC = "ipam.spidernet.io/default-route-nic"
)

// Annotations of a namespace: JSON lists of pool names for its pods.
const (
	AnnotationDefaultPoolsV4 = "ipam.spidernet.io/default-ipv4-ippool"
	AnnotationDefaultPoolsV6 = "ipam.spidernet.io/default-ipv6-ippool"
)

// Labels of pools and subnets.
const (
	LabelPoolCIDR   = "ipam.spidernet.io/ippool-cidr" // with ".", ":" and "/" as "-"
	LabelSubnetCIDR = "ipam.spidernet.io/subnet-cidr"
	LabelSubnet     = "ipam.spidernet.io/owner-spider-subnet"
	LabelInterface  = "ipam.spidernet.io/interface"
	LabelIPVersion  = "ipam.spidernet.io/ip-version" // IPv4, IPv6
	LabelReclaim    = "ipam.spidernet.io/ippool-reclaim"

	LabelOwnerGroupVersion = "ipam.spidernet.io/owner-application-gv"
	LabelOwnerKind         = "ipam.spidernet.io/owner-application-kind"
	LabelOwnerNamespace    = "ipam.spidernet.io/owner-application-namespace"
	LabelOwnerName         = "ipam.spidernet.io/owner-application-name"
	LabelOwnerUID          = "ipam.spidernet.io/owner-application-uid"
)

// Keys of the pod affinity of an application's own pool: they name the
// application, and match no label of a pod.
const (
	AffinityAppGroup     = "ipam.spidernet.io/app-api-group"
	AffinityAppVersion   = "ipam.spidernet.io/app-api-version"
	AffinityAppKind      = "ipam.spidernet.io/app-kind"
	AffinityAppNamespace = "ipam.spidernet.io/app-namespace"
	AffinityAppName      = "ipam.spidernet.io/app-name"
)
