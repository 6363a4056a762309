package controller

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"railhead/internal/policy"
)

// Defaults of Options.
const (
	DefaultService       = "railhead-controller"
	DefaultLeaseDuration = 15 * time.Second
	DefaultRenewDeadline = 10 * time.Second
	DefaultRetryPeriod   = 2 * time.Second
)

// complete fills in defaults and refuses what makes no sense.
func (o *Options) complete() error {
	if len(o.ConfigMapNames) == 0 {
		o.ConfigMapNames = []string{policy.ConfigMapName, policy.ConfigMapOldName}
	}
	o.WebhookURL = strings.TrimRight(o.WebhookURL, "/") // paths are appended
	o.Service = cmp.Or(o.Service, DefaultService)
	o.LeaseDuration = cmp.Or(o.LeaseDuration, DefaultLeaseDuration)
	o.RenewDeadline = cmp.Or(o.RenewDeadline, DefaultRenewDeadline)
	o.RetryPeriod = cmp.Or(o.RetryPeriod, DefaultRetryPeriod)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Config == nil {
		return errors.New("no access to Kubernetes is configured")
	}
	return errors.Join(o.checkNames(), o.checkAddresses(), o.checkLease())
}

func (o *Options) checkNames() error {
	var errs []error
	for what, name := range map[string]string{"namespace": o.Namespace, "Service": o.Service} {
		if len(validation.IsDNS1123Label(name)) > 0 {
			errs = append(errs, fmt.Errorf("%s %q: want lower-case letters, digits and -", what, name))
		}
	}
	for _, name := range o.ConfigMapNames {
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			errs = append(errs, fmt.Errorf("ConfigMap %q: want lower-case letters, digits, . and -", name))
		}
	}
	return errors.Join(errs...)
}

func (o *Options) checkAddresses() error {
	errs := []error{checkAddress("webhooks", o.WebhookListen)}
	for what, address := range map[string]string{"metrics": o.MetricsListen, "health": o.HealthListen} {
		if address != "" {
			errs = append(errs, checkAddress(what, address))
		}
	}
	if o.WebhookURL != "" {
		u, err := url.Parse(o.WebhookURL)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Path != "" {
			errs = append(errs, fmt.Errorf(`URL of the webhooks %q: want "https://host:port"`, o.WebhookURL))
		}
	}
	return errors.Join(errs...)
}

func checkAddress(what, address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("address of %s %q: want host:port or :port", what, address)
	}
	return nil
}

// checkLease wants a leader to give up before another may take over.
func (o *Options) checkLease() error {
	switch {
	case o.RetryPeriod < 0:
		return fmt.Errorf("retry period %s: want more than 0", o.RetryPeriod)
	case o.RenewDeadline <= o.RetryPeriod*6/5: // client-go waits up to a fifth longer
		return fmt.Errorf("renew deadline %s: want more than 1.2 times the retry period of %s", o.RenewDeadline, o.RetryPeriod)
	case o.LeaseDuration <= o.RenewDeadline:
		return fmt.Errorf("lease duration %s: want more than the renew deadline of %s", o.LeaseDuration, o.RenewDeadline)
	}
	return nil
}
