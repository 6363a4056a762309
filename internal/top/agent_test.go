package top

import (
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func serve(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	switch {
	case r.URL.Path != "/metrics":
		http.NotFound(w, r)
	case user != "admin" || password != "secret":
		w.WriteHeader(http.StatusUnauthorized)
	case !strings.HasPrefix(r.Header.Get("Accept"), "text/plain"):
		w.WriteHeader(http.StatusNotAcceptable)
	default:
		_, _ = w.Write([]byte(rx + "1\n"))
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.HandlerFunc(serve))
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(http.HandlerFunc(serve))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // a client refuses it on purpose
	secure.StartTLS()
	t.Cleanup(secure.Close)
	gone := httptest.NewServer(http.HandlerFunc(serve))
	gone.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})
	for _, tt := range []struct {
		name    string
		config  AgentConfig
		wantErr string // empty for none
	}{
		{"whole URL", AgentConfig{URL: plain.URL + "/metrics", User: "admin", Password: "secret"}, ""},
		{"host and port alone", AgentConfig{URL: strings.TrimPrefix(plain.URL, "http://"), User: "admin", Password: "secret"}, ""},
		{"URL without a path", AgentConfig{URL: plain.URL, User: "admin", Password: "secret"}, ""},
		{"password in the URL", AgentConfig{URL: strings.Replace(plain.URL, "//", "//admin:secret@", 1)}, ""},
		{"TLS", AgentConfig{URL: secure.URL, User: "admin", Password: "secret", CA: ca}, ""},
		{"unknown CA", AgentConfig{URL: secure.URL, User: "admin", Password: "secret"}, "certificate"},
		{"wrong password", AgentConfig{URL: plain.URL, User: "admin", Password: "guess"}, `"401 Unauthorized"`},
		{"wrong path", AgentConfig{URL: plain.URL + "/metric"}, `"404 Not Found"`},
		{"nobody there", AgentConfig{URL: gone.URL}, "connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			agent, err := NewAgent(tt.config)
			if err != nil {
				t.Fatal(err)
			}
			text, err := agent.Scrape(t.Context())
			if tt.wantErr == "" && (err != nil || string(text) != rx+"1\n") {
				t.Errorf("answer %q, error %v", text, err)
			}
			if tt.wantErr != "" && (err == nil || !strings.Contains(err.Error(), tt.wantErr)) {
				t.Errorf("error %v does not say %s", err, tt.wantErr)
			}
			if told := agent.Name(); strings.Contains(told, "secret") {
				t.Errorf("the name tells a password: %s", told)
			}
		})
	}
}

// TestAgentTooLong wants an answer without end to be an error.
func TestAgentTooLong(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		block := make([]byte, 1<<20)
		for range scrapeLimit/len(block) + 1 {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	agent, err := NewAgent(AgentConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Scrape(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Errorf("error %v does not tell the limit", err)
	}
}

func TestAgentCanceled(t *testing.T) {
	t.Parallel()
	agent, err := NewAgent(AgentConfig{URL: DefaultAgent})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := agent.Scrape(ctx); err == nil {
		t.Error("there is no error")
	}
}

func TestBadAgents(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]AgentConfig{
		`"ftp://node-7" is not like`: {URL: "ftp://node-7"},
		`"http:" is not like`:        {URL: "http://"},
		"invalid URL escape":         {URL: "http://%zz"},
		"no PEM certificate":         {URL: DefaultAgent, CA: []byte("nothing of the kind")},
	} {
		if _, err := NewAgent(config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %s", config.URL, err, want)
		}
	}
}
