// Package coordinator finds out which addresses the cluster's own network gives
// to pods and Services, so that rails leave them alone: it keeps the status of
// each SpiderCoordinator, with the reason where it could not be found out.
//
// It asks the API server only, and never guesses: what no source says is absent.
//
// Source: flags and objects of kubeadm, k3s, RKE2, Kubernetes' ServiceCIDR API,
// calico and cilium.
package coordinator
