// Package api is the folder of the objects that users and Railhead's parts
// write; each group and version is a package of its own. Deep copies and the
// custom resource definitions in charts/railhead/crds are made from them.
package api

//go:generate env GOWORK=off go tool -modfile=../tools/crds/go.mod controller-gen object crd:generateEmbeddedObjectMeta=false paths=./... output:crd:artifacts:config=../charts/railhead/crds
