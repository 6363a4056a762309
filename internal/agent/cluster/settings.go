package cluster

import (
	"log/slog"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/policy"
)

// settings keep the Catalog's Config as a ConfigMap says: the first that there
// is of several names. One that cannot be understood changes nothing: what was
// understood last stays in force. They are safe for concurrent use.
type settings struct {
	catalog *policy.Catalog
	names   []string
	log     *slog.Logger

	mu         sync.Mutex
	configMaps map[string]*configMap
	read       string // name and resource version of what was looked at last
}

func newSettings(catalog *policy.Catalog, names []string, log *slog.Logger) *settings {
	return &settings{catalog: catalog, names: names, log: log, configMaps: map[string]*configMap{}}
}

// trimConfigMap leaves a ConfigMap the settings.
func trimConfigMap(o metav1.Object) {
	trimMeta(o)
	if m, ok := o.(*configMap); ok {
		text, ok := m.Data[policy.ConfigMapKey]
		if m.Data = nil; ok {
			m.Data = map[string]string{policy.ConfigMapKey: text}
		}
	}
}

func (s *settings) put(_, now metav1.Object) {
	if m, ok := now.(*configMap); ok {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.configMaps[m.Name] = m
		s.load()
	}
}

func (s *settings) drop(key types.NamespacedName, _ metav1.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.configMaps, key.Name)
	s.load()
}

// load brings into force what the ConfigMap that counts says, if that is new. It
// is called with the lock held.
func (s *settings) load() {
	m := s.current()
	if m == nil {
		s.read = ""
		s.log.Warn("the ConfigMap with settings is gone: defaults are in force", "names", s.names)
		s.catalog.SetConfig(policy.DefaultConfig())
		return
	}
	read := m.Name + " " + m.ResourceVersion
	if read == s.read {
		return
	}
	s.read = read
	config, err := policy.ConfigOf(m.Data)
	if err != nil {
		s.log.Error("bad settings: the last good ones stay in force", "name", m.Name, "error", err)
		return
	}
	s.log.Debug("settings are in force", "name", m.Name, "resource_version", m.ResourceVersion)
	s.catalog.SetConfig(config)
}

// current is the ConfigMap that counts, nil if there is none.
func (s *settings) current() *configMap {
	for _, name := range s.names {
		if m := s.configMaps[name]; m != nil {
			return m
		}
	}
	return nil
}
