package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// clusterFlags say which cluster to look at, and where in it, as those of
// kubectl do: --kubeconfig, else $KUBECONFIG, else ~/.kube/config, else the
// cluster that the program runs in.
type clusterFlags struct {
	kubeconfig, context, namespace string
	everywhere                     bool
}

func addClusterFlags(cmd *cobra.Command) *clusterFlags {
	f := &clusterFlags{}
	cmd.Flags().StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file (default: $KUBECONFIG, ~/.kube/config, or the cluster this runs in)")
	cmd.Flags().StringVar(&f.context, "context", "", "the context of the kubeconfig")
	return f
}

// addNamespaceFlags adds flags for what is in namespaces.
func (f *clusterFlags) addNamespaceFlags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "the namespace (default: that of the context)")
	cmd.Flags().BoolVarP(&f.everywhere, "all-namespaces", "A", false, "look in all namespaces")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
}

func (f *clusterFlags) loader() clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: f.context})
}

// config says how to ask the API server.
func (f *clusterFlags) config() (*rest.Config, error) {
	config, err := f.loader().ClientConfig()
	if err != nil {
		return nil, f.noCluster(err)
	}
	config.Timeout = 30 * time.Second // for each page
	config.QPS, config.Burst = 50, 100
	return config, nil
}

// where is the namespace to look in, "" for all.
func (f *clusterFlags) where() (string, error) {
	if f.everywhere || f.namespace != "" {
		return f.namespace, nil
	}
	namespace, _, err := f.loader().Namespace()
	if err != nil {
		return "", f.noCluster(err)
	}
	return namespace, nil
}

// noCluster says that the kubeconfig leads to no cluster.
func (f *clusterFlags) noCluster(err error) error {
	switch {
	case clientcmd.IsEmptyConfig(err) && f.kubeconfig != "":
		err = fmt.Errorf("%s is empty or has no current-context", f.kubeconfig)
	case clientcmd.IsEmptyConfig(err):
		err = errors.New("there is no kubeconfig, or it has no current-context")
	}
	return fmt.Errorf("no cluster to look at: %w; want a kubeconfig by --kubeconfig, $KUBECONFIG or ~/.kube/config, and a context that it has", err)
}
