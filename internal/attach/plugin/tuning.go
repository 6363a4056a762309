package plugin

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
)

// tuning adds to what tunings in front of it say, and overrides it. Its MAC
// address becomes the interface's.
func (b *builder) tuning(config []byte) error {
	errKnown := known(config, "sysctl", "mac", "promisc", "mtu", "txQLen", "allmulti", "dataDir")
	c, err := decode[struct {
		asked

		Sysctl   map[string]string `json:"sysctl"`
		MAC      string            `json:"mac"`
		Promisc  bool              `json:"promisc"`
		MTU      int               `json:"mtu"`
		TxQLen   int               `json:"txQLen"`
		AllMulti *bool             `json:"allmulti"`
	}](config)
	if err != nil {
		return err
	}
	mac, err := c.mac(c.MAC)
	errs := []error{errKnown, err, checkMTU(c.MTU), checkSysctls(c.Sysctl)}
	if c.TxQLen < 0 || c.TxQLen > math.MaxInt32 {
		errs = append(errs, badField("txQLen", c.TxQLen, "0 to leave it as it is, or a number of packets"))
	}
	t := &b.made.Tuning
	if len(c.Sysctl) > 0 && t.Sysctls == nil {
		t.Sysctls = map[string]string{}
	}
	maps.Copy(t.Sysctls, c.Sysctl)
	if mac != nil {
		b.tuned = mac
	}
	if c.MTU != 0 {
		t.MTU = c.MTU
	}
	if c.TxQLen != 0 {
		t.TxQueueLen = c.TxQLen
	}
	if c.Promisc {
		t.Promisc = &c.Promisc
	}
	if c.AllMulti != nil {
		t.AllMulti = c.AllMulti
	}
	return errors.Join(errs...)
}

// checkSysctls wants settings of the network alone: others are the node's, and
// not of the pod's namespace.
func checkSysctls(all map[string]string) error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if !isNetworkSetting(key) {
			errs = append(errs, fmt.Errorf("field sysctl: %q: want a setting below net, such as net.ipv4.conf.IFNAME.arp_filter", key))
		}
		if strings.ContainsAny(all[key], "\n\x00") || all[key] == "" {
			errs = append(errs, fmt.Errorf("field sysctl: %s: %q: want a value of one line", key, all[key]))
		}
	}
	return errors.Join(errs...)
}

// isNetworkSetting says whether a setting is below net. As sysctl(8) has it,
// whichever of "." and "/" comes first in a name separates, and the other stands
// for a dot.
func isNetworkSetting(key string) bool {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		key = strings.NewReplacer(".", "/", "/", ".").Replace(key)
	}
	return strings.HasPrefix(key, "net/") && path.Clean(key) == key && !strings.ContainsAny(key, " \t\n\x00")
}
