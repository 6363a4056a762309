package component

import (
	"slices"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/pki"
	"railhead/hack/cluster/plan"
)

// ControlPlane is the machine that the fabric is. Its services may all be
// started at once: they wait for each other.
func ControlPlane(c *plan.Cluster, p *pki.PKI) (Machine, error) {
	files, err := controlPlaneCredentials(c, p)
	if err != nil {
		return Machine{}, err
	}
	return Machine{
		Files:    files,
		Services: []box.Service{etcd(c), apiServer(c), controllerManager(c), scheduler(c)},
	}, nil
}

// etcd keeps its data only as long as the machine lives, so it need not wait
// for a disk.
func etcd(c *plan.Cluster) box.Service {
	clients, peers := etcdURL(c), "http://"+localPort(c, 2380)
	return service(Etcd,
		"--name="+plan.Fabric,
		"--data-dir="+EtcdData,
		"--listen-client-urls="+clients,
		"--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers,
		"--initial-cluster="+plan.Fabric+"="+peers,
		"--unsafe-no-fsync",
		"--log-level=warn",
	)
}

func etcdURL(c *plan.Cluster) string { return "http://" + localPort(c, 2379) }

// controllerManager leaves pod networks alone: nodes are created with theirs,
// so that they do not depend on who was first.
func controllerManager(c *plan.Cluster) box.Service {
	return service(ControllerManager, slices.Concat(clientOf(c, controllerManagerKubeconfig), []string{
		"--controllers=*,-node-ipam-controller",
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + saPrivateKey,
		"--root-ca-file=" + caCert,
		"--cluster-signing-cert-file=" + caCert,
		"--cluster-signing-key-file=" + caKey,
		"--node-monitor-grace-period=20s",
		"--flex-volume-plugin-dir=" + volumePlugins,
	})...)
}

func scheduler(c *plan.Cluster) box.Service {
	return service(Scheduler, clientOf(c, schedulerKubeconfig)...)
}

// clientOf has what the two clients of the API server have in common. They are
// told whom to believe: looking it up fails until the API server has made its
// first roles, and would end the controller manager.
func clientOf(c *plan.Cluster, kubeconfig string) []string {
	return []string{
		"--bind-address=" + local(c),
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--authentication-skip-lookup",
		"--client-ca-file=" + caCert,
		"--kube-api-qps=200",
		"--kube-api-burst=400",
		"--leader-elect=false",
		"--profiling=false",
	}
}
