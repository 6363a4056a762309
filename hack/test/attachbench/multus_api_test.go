package attachbench

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	cniv1 "railhead/api/cni/v1"
)

// definitionsKind is of networks in the API, and their path.
const (
	definitionsKind = "NetworkAttachmentDefinition"
	definitionsPath = "network-attachment-definitions"
)

// multusAPI is as much of an API server as Multus asks: pods with their
// annotation, and a network for each rail. It answers from memory and forgets what
// it is told, which takes less time than that of a cluster.
type multusAPI struct {
	pods     corev1.PodList
	networks cniv1.NetworkAttachmentDefinitionList
}

// newMultusAPI has the pods, the cluster's own network, and one with the
// configuration of each rail, which all pods ask for. Plugins keep what they keep
// below dir.
func newMultusAPI(pods []*pod, dir string) *multusAPI {
	a := &multusAPI{}
	a.pods.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}
	a.networks.TypeMeta = metav1.TypeMeta{APIVersion: cniv1.GroupVersion.String(), Kind: definitionsKind + "List"}
	a.pods.ResourceVersion, a.networks.ResourceVersion = "1", "1"
	a.addNetwork(podsNetwork, eth0(dir))
	var names []string
	for i := range rails {
		names = append(names, parent(i))
		a.addNetwork(parent(i), chain(dir, i))
	}
	for _, p := range pods {
		made := corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: objectMeta(p.id)}
		made.Annotations = map[string]string{cniv1.AnnotationNetworks: strings.Join(names, ",")}
		made.Spec.NodeName = "node1"
		a.pods.Items = append(a.pods.Items, made)
	}
	return a
}

func (a *multusAPI) addNetwork(name string, config object) {
	text, err := json.Marshal(config)
	utilruntime.Must(err) // of strings alone
	a.networks.Items = append(a.networks.Items, cniv1.NetworkAttachmentDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: cniv1.GroupVersion.String(), Kind: definitionsKind},
		ObjectMeta: objectMeta(name),
		Spec:       cniv1.NetworkAttachmentDefinitionSpec{Config: string(text)},
	})
}

func objectMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), ResourceVersion: "1"}
}

// handler serves it over HTTP.
func (a *multusAPI) handler() http.Handler {
	mux := http.NewServeMux()
	networks := "/apis/" + cniv1.GroupVersion.String()
	mux.HandleFunc("GET /api/v1/pods", listOrWatch(&a.pods))
	mux.HandleFunc("GET "+networks+"/"+definitionsPath, listOrWatch(&a.networks))
	const inNamespace = "/namespaces/{namespace}/"
	mux.HandleFunc("GET /api/v1"+inNamespace+"pods/{name}", a.servePod)
	mux.HandleFunc("PUT /api/v1"+inNamespace+"pods/{name}/status", a.servePod)
	mux.HandleFunc("POST /api/v1"+inNamespace+"events", serveEvent)
	mux.HandleFunc("PATCH /api/v1"+inNamespace+"events/{name}", serveEvent)
	return mux
}

// listOrWatch lists objects, or tells a watcher of nothing for as long as it wants.
func listOrWatch(list kruntime.Object) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			writeObject(w, list)
			return
		}
		seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
		if err != nil {
			http.Error(w, "timeoutSeconds: "+err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json;stream=watch")
		w.WriteHeader(http.StatusOK)
		if http.NewResponseController(w).Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
		case <-time.After(time.Duration(seconds) * time.Second):
		}
	}
}

// servePod answers with a pod, also when its status is written.
func (a *multusAPI) servePod(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	for i := range a.pods.Items {
		if p := &a.pods.Items[i]; p.Name == r.PathValue("name") {
			writeObject(w, p)
			return
		}
	}
	http.NotFound(w, r)
}

// serveEvent takes an event.
func serveEvent(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	writeObject(w, &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: objectMeta("event")})
}

func writeObject(w http.ResponseWriter, o kruntime.Object) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(o) // who has gone needs no answer
}
