package top

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// DefaultAgent is where the agent of this node exposes its metrics.
const DefaultAgent = "http://127.0.0.1:5711/metrics"

const (
	scrapeTimeout = 10 * time.Second
	scrapeLimit   = 64 << 20 // bytes; 8 PFs with 128 VFs and 100 pods take about 4 MiB
)

// AgentConfig says how to reach an agent.
type AgentConfig struct {
	URL      string // or host and port alone; /metrics is added where there is no path
	User     string // for basic authentication; empty for none
	Password string
	CA       []byte // PEM certificates that may vouch for the agent; nil for those of the system
}

// Agent is the source that asks an agent by HTTP. It is safe for concurrent
// use.
type Agent struct {
	config AgentConfig
	url    *url.URL
	client *http.Client
}

// NewAgent checks the configuration; it does not ask the agent yet.
func NewAgent(config AgentConfig) (*Agent, error) {
	address := config.URL
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the agent's URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("the agent's URL %q is not like %s", u.Redacted(), DefaultAgent)
	case u.Path == "" || u.Path == "/":
		u.Path = "/metrics"
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if config.CA != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(config.CA) {
			return nil, errors.New("the CA of the agent: there is no PEM certificate in it")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Agent{config: config, url: u, client: &http.Client{Transport: transport, Timeout: scrapeTimeout}}, nil
}

// Name is the URL, without a password.
func (a *Agent) Name() string { return "agent " + a.url.Redacted() }

// Scrape asks the agent.
func (a *Agent) Scrape(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	if a.config.User != "" {
		request.SetBasicAuth(a.config.User, a.config.Password)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %q, wanted is 200 OK", a.url.Redacted(), response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, scrapeLimit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.url.Redacted(), err)
	}
	if len(text) > scrapeLimit {
		return nil, fmt.Errorf("%s answers with more than %d MiB", a.url.Redacted(), scrapeLimit>>20)
	}
	return text, nil
}
