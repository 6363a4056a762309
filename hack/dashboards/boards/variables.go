package boards

import "railhead/hack/dashboards/grafana"

func clusterVariable() grafana.Variable {
	return grafana.LabelVariable("cluster", "Cluster", "rdma_device_info", "cluster")
}

func nodeVariable() grafana.Variable {
	return grafana.LabelVariable("node", "Node", inCluster.series("rdma_device_info"), "instance")
}

func railVariable(s scope) grafana.Variable {
	return grafana.LabelVariable("rail", "Rail", s.series("rdma_port_info"), "rail")
}
