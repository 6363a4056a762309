package annotation

import (
	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
)

// podTable has the annotations of a pod.
var podTable = map[string]grammar{
	cniv1.AnnotationNetworks:          errorsOf(Networks),
	cniv1.AnnotationDefaultNetwork:    errorsOf(DefaultNetwork),
	v2beta1.AnnotationSubnets:         reviewElsewhere,
	v2beta1.AnnotationSubnet:          reviewElsewhere,
	v2beta1.AnnotationPools:           errorsOf(Pools),
	v2beta1.AnnotationPool:            errorsOf(Pool),
	v2beta1.AnnotationRoutes:          errorsOf(Routes),
	v2beta1.AnnotationPoolNumber:      reviewPoolNumber,
	v2beta1.AnnotationPoolReclaim:     reviewReclaim,
	v2beta1.AnnotationDefaultRouteNIC: reviewNIC,
	v2beta1.AnnotationInjectRDMA:      reviewValues,
	v2beta1.AnnotationInjectNetwork:   reviewValues,
}

// namespaceTable has the annotations of a namespace.
var namespaceTable = map[string]grammar{
	v2beta1.AnnotationDefaultPoolsV4: errorsOf(PoolNames),
	v2beta1.AnnotationDefaultPoolsV6: errorsOf(PoolNames),
	v2beta1.AnnotationInjectRDMA:     reviewValues,
	v2beta1.AnnotationInjectNetwork:  reviewValues,
}
