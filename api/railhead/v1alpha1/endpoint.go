package v1alpha1

// What an agent writes on the SpiderEndpoints that it publishes, beside what
// SpiderEndpoint has fields for.
const (
	// LabelNode is the node whose agent published it; of a name that is too long
	// for a label, its beginning and a hash.
	LabelNode = "railhead.io/node"
	// AnnotationSandbox is the pod's sandbox that has the addresses.
	AnnotationSandbox = "railhead.io/sandbox"
	// AnnotationPod is the pod's name where it is not the endpoint's, as with a VM.
	AnnotationPod = "railhead.io/pod"
	// AnnotationIdentity is the identity that keeps the addresses over the lives of
	// its pods. Agents never delete such an endpoint.
	AnnotationIdentity = "railhead.io/identity"
)
