package main

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"

	"railhead/internal/simulation"
)

// deployFile is a file that administrators put on nodes or into clusters.
func deployFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// objects decodes a manifest. Fields that Kubernetes does not know are errors.
func objects(t *testing.T, name string) (all []runtime.Object) {
	t.Helper()
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for document := range strings.SplitSeq(deployFile(t, name), "\n---\n") {
		object, _, err := decoder.Decode([]byte(document), nil, nil)
		if err != nil {
			t.Fatalf("%s: %v in:\n%s", name, err, document)
		}
		all = append(all, object)
	}
	return all
}

// only returns the one object of a type that a manifest has.
func only[T runtime.Object](t *testing.T, name string) (found T) {
	t.Helper()
	count := 0
	for _, object := range objects(t, name) {
		if o, ok := object.(T); ok {
			found, count = o, count+1
		}
	}
	if count != 1 {
		t.Fatalf("%s has %d objects of type %T, want one", name, count, found)
	}
	return found
}

// TestManifests wants the agent to take the arguments, and to know its node and
// its pod.
func TestManifests(t *testing.T) {
	t.Parallel()
	container := only[*appsv1.DaemonSet](t, "railhead-agent.yaml").Spec.Template.Spec.Containers[0]
	if got := container.Command[1]; got != agentCommand().Name() {
		t.Errorf("the container runs %q, want agent", got)
	}
	if err := agentCommand().ParseFlags(container.Args); err != nil {
		t.Error(err)
	}
	for _, variable := range []string{"NODE_NAME", "POD_NAME"} {
		if !slices.ContainsFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == variable }) {
			t.Errorf("the container lacks the variable %s", variable)
		}
	}
	if root := container.Args[slices.IndexFunc(container.Args, func(a string) bool { return strings.HasPrefix(a, "--host-root=") })]; !mounts(container, strings.TrimPrefix(root, "--host-root=")) {
		t.Errorf("%s, and nothing is mounted there", root)
	}
}

// mounts tells whether a container has a mount at a path.
func mounts(c corev1.Container, path string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
}

// TestAddressesDir wants the journal of addresses to be where it outlives the
// agent's pod.
func TestAddressesDir(t *testing.T) {
	t.Parallel()
	dir := agentCommand().Flag("addresses-dir").DefValue
	pod := only[*appsv1.DaemonSet](t, "railhead-agent.yaml").Spec.Template.Spec
	for _, m := range pod.Containers[0].VolumeMounts {
		volume := pod.Volumes[slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })]
		if volume.HostPath != nil && !m.ReadOnly && strings.HasPrefix(dir, m.MountPath+"/") && volume.HostPath.Path == m.MountPath {
			return
		}
	}
	t.Errorf("no volume of the node has %s", dir)
}

// TestDemo wants the agent to take what the demo adds to its arguments, the scenario
// among them, and that to be about the pods of the demo's workloads.
func TestDemo(t *testing.T) {
	t.Parallel()
	var added []string
	for line := range strings.Lines(deployFile(t, "demo/kustomization.yaml")) {
		if _, rest, found := strings.Cut(line, "/args/-, value: "); found {
			argument, _, _ := strings.Cut(rest, "}")
			added = append(added, argument)
		}
	}
	if err := agentCommand().ParseFlags(added); err != nil {
		t.Error(err)
	}
	for key, text := range only[*corev1.ConfigMap](t, "demo/scenario.yaml").Data {
		if argument := "--simulate=/etc/railhead/" + key; !slices.Contains(added, argument) {
			t.Errorf("the demo's arguments are %q, want %s among them", added, argument)
		}
		file := filepath.Join(t.TempDir(), key)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := simulation.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		hosts := []string{
			only[*batchv1.Job](t, "demo/workloads.yaml").Name + "-0",
			only[*appsv1.Deployment](t, "demo/workloads.yaml").Name + "-7f969d5876-c9mxr",
		}
		for _, host := range hosts {
			if !slices.ContainsFunc(s.Pods, func(p simulation.Pod) bool { ok, err := path.Match(p.Match["HOSTNAME"], host); return ok && err == nil }) {
				t.Errorf("no pod of the scenario matches the host name %s", host)
			}
		}
	}
}

// TestUnit wants the systemd unit to start the agent.
func TestUnit(t *testing.T) {
	t.Parallel()
	for line := range strings.SplitSeq(deployFile(t, "railhead-agent.service"), "\n") {
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			if fields := strings.Fields(command); filepath.Base(fields[0]) != "railhead" || fields[1] != agentCommand().Name() {
				t.Errorf("the unit starts %q", command)
			}
			return
		}
	}
	t.Error("the unit starts nothing")
}
