package controller

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"railhead/internal/policy"
)

// settings keep the Catalog's Config as a ConfigMap says: the first that there
// is of several names. One that cannot be understood changes nothing: what was
// understood last stays in force.
type settings struct {
	catalog  *policy.Catalog
	names    []string
	log      *slog.Logger
	problems chan problem // the last that was not told yet
	onChange []func()     // called when others are in force

	mu         sync.Mutex
	configMaps map[string]*corev1.ConfigMap
	read       string // name and resource version of what was looked at last
	valid      bool
}

// problem is a ConfigMap and what is wrong with it.
type problem struct {
	configMap *corev1.ConfigMap
	err       error
}

func newSettings(catalog *policy.Catalog, names []string, log *slog.Logger) *settings {
	return &settings{
		catalog: catalog, names: names, log: log, valid: true,
		problems: make(chan problem, 1), configMaps: map[string]*corev1.ConfigMap{},
	}
}

// configMapInformers watch the ConfigMaps of these names and no others.
func configMapInformers(config *rest.Config, namespace string, names []string) ([]toolscache.SharedIndexInformer, error) {
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("watch ConfigMaps: %w", err)
	}
	var list []toolscache.SharedIndexInformer
	for _, name := range names {
		source := toolscache.NewListWatchFromClient(clients.CoreV1().RESTClient(), "configmaps", namespace, fields.OneTermEqualSelector("metadata.name", name))
		list = append(list, toolscache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0, toolscache.Indexers{}))
	}
	return list, nil
}

// started says so when there is no ConfigMap.
func (s *settings) started() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current() == nil {
		s.log.Info("no ConfigMap with settings: defaults are in force", "names", s.names)
	}
}

func (s *settings) put(object client.Object) {
	if configMap, ok := object.(*corev1.ConfigMap); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.configMaps[configMap.Name] = configMap
		s.load()
	}
}

func (s *settings) remove(object client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.configMaps, object.GetName())
	s.load()
}

// current is the ConfigMap that counts, nil if there is none.
func (s *settings) current() *corev1.ConfigMap {
	for _, name := range s.names {
		if configMap := s.configMaps[name]; configMap != nil {
			return configMap
		}
	}
	return nil
}

// load brings into force what the ConfigMap that counts says, if that is new.
func (s *settings) load() {
	configMap, config := s.current(), policy.DefaultConfig()
	if configMap == nil {
		s.read, s.valid = "", true
		s.log.Warn("the ConfigMap with settings is gone: defaults are in force", "names", s.names)
		s.enforce(config)
		return
	}
	read := configMap.Name + " " + configMap.ResourceVersion
	if read == s.read {
		return
	}
	config, err := policy.ConfigOf(configMap.Data)
	s.read, s.valid = read, err == nil
	if err != nil {
		s.log.Error("bad settings: the last good ones stay in force", "name", configMap.Name, "error", err)
		s.tell(problem{configMap, err})
		return
	}
	s.log.Info("settings are in force", "name", configMap.Name, "resource_version", configMap.ResourceVersion)
	s.enforce(config)
}

// enforce brings settings into force. What was wrong before is nobody's concern
// any more, though no leader has told it.
func (s *settings) enforce(config policy.Config) {
	s.forget()
	s.catalog.SetConfig(config)
	for _, changed := range s.onChange {
		changed()
	}
}

func (s *settings) isValid() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.valid
}

// tell leaves a problem for report, in the place of an older one.
func (s *settings) tell(p problem) {
	s.forget()
	s.problems <- p // whoever tells holds the lock: the place is free
}

// forget drops the problem that was not told yet, if there is one.
func (s *settings) forget() {
	select {
	case <-s.problems:
	default:
	}
}

// report makes Events of problems, as the leader, until ctx ends.
func (s *settings) report(ctx context.Context, recorder events.EventRecorder) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-s.problems:
			recorder.Eventf(p.configMap, nil, corev1.EventTypeWarning, "Invalid", "Load", "the last good settings stay in force: %v", p.err)
		}
	}
}

// changes has an event whenever other settings came into force.
func (s *settings) changes() <-chan event.GenericEvent {
	events := make(chan event.GenericEvent, 1)
	s.onChange = append(s.onChange, func() {
		select {
		case events <- event.GenericEvent{Object: &corev1.ConfigMap{}}:
		default: // the one that waits says it too
		}
	})
	return events
}
