package controller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"railhead/internal/webhook"
	"railhead/internal/webhook/certificates"
	"railhead/internal/webhook/registration"
)

// certificateSecret is where replicas share the webhooks' certificate.
const certificateSecret = "railhead-controller-certificate"

// admission is the webhooks of this replica.
type admission struct {
	address      string
	handler      http.Handler
	certificate  certificate
	rotation     manager.Runnable // nil: somebody else renews the certificate
	registration *registration.Registration
	changed      chan struct{} // has a token when the certificate is another
	health       *health
}

// certificate is one that is made here, or that somebody else renews.
type certificate interface {
	manager.Runnable
	GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Bundle() ([]byte, bool)
	OnChange(func())
}

// newAdmission makes the webhooks, their certificate, and what tells the API
// server of both. None of it runs yet.
func (c *controller) newAdmission() (*admission, error) {
	leader, err := client.New(c.fenced(), client.Options{Scheme: c.scheme})
	if err != nil {
		return nil, fmt.Errorf("access to Kubernetes: %w", err)
	}
	a := &admission{
		address: c.WebhookListen,
		handler: webhook.New(webhook.Options{Catalog: c.catalog, Namespaces: c.namespaces, Log: c.Log, Registry: c.registry}),
		changed: make(chan struct{}, 1),
		health:  c.health,
	}
	registered := a.certify(c)
	a.registration = registration.New(registration.Options{
		Client:           leader,
		Endpoint:         registration.Endpoint{Namespace: c.Namespace, Service: c.Service, URL: c.WebhookURL},
		Config:           c.catalog.Config,
		Annotated:        c.namespaces.Annotated,
		Bundle:           a.certificate.Bundle,
		Registered:       registered,
		OwnerClusterRole: c.OwnerClusterRole,
		Log:              c.Log,
	})
	c.settings.onChange = append(c.settings.onChange, a.registration.Poke)
	c.namespaces.OnChange(a.registration.Poke)
	a.certificate.OnChange(func() {
		a.wake()
		a.registration.Poke()
	})
	return a, nil
}

// certify finds a certificate for every replica, and returns who is told what
// the API server trusts.
func (a *admission) certify(c *controller) (registered func([]byte)) {
	if c.CertDir != "" {
		a.certificate = certificates.NewFiles(c.CertDir, c.Log)
		return nil
	}
	keeper := certificates.NewKeeper(certificates.Options{
		Client: c.direct, Namespace: c.Namespace, Secret: certificateSecret, Names: c.webhookNames(), Log: c.Log,
	})
	a.certificate, a.rotation = keeper, keeper.Rotation()
	return keeper.Registered
}

// setup has the manager run what goes on beside requests.
func (a *admission) setup(mgr ctrl.Manager) error {
	if a.rotation != nil {
		if err := mgr.Add(a.rotation); err != nil {
			return err
		}
	}
	return errors.Join(mgr.Add(a.certificate), a.registration.Setup(mgr))
}

// webhookNames are what the API server calls the webhooks.
func (c *controller) webhookNames() []string {
	if u, err := url.Parse(c.WebhookURL); err == nil && u.Host != "" {
		return []string{u.Hostname()}
	}
	name := c.Service + "." + c.Namespace + ".svc"
	return []string{name, c.Service + "." + c.Namespace, name + ".cluster.local"}
}

func (a *admission) wake() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// serve answers from the first certificate on until ctx ends. The replica is
// ready once its port is open.
func (a *admission) serve(ctx context.Context) error {
	a.health.wait("the webhooks' certificate")
	for {
		if _, ok := a.certificate.Bundle(); ok {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.changed:
		}
	}
	listener, err := listen(ctx, a.address)
	if err != nil {
		return fmt.Errorf("webhooks: %w", err)
	}
	a.health.ready()
	defer a.health.wait("the end")
	return serve(ctx, tls.NewListener(listener, a.tls()), a.handler)
}

// tls leaves out HTTP/2, whose one connection the API server would keep to a
// replica that hangs: for 45 seconds it would ask no other. Over HTTP/1.1 it opens
// another one once a request has timed out.
func (a *admission) tls() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: a.certificate.GetCertificate}
}
