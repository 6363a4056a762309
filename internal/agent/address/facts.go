package address

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/node"
)

// factsFile keeps which node this is, beside the journal: an agent that starts
// while the API server is away cannot ask.
const factsFile = "node.json"

// facts are which node this is, and which start of it.
type facts struct {
	Name   string    `json:"name"`
	UID    types.UID `json:"uid"`
	BootID string    `json:"bootID"`
}

// bootID reads which start of the node this is.
func bootID(n node.Node) (string, error) {
	id, err := n.FS().Sysctl("kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("which boot of the node this is: %w", err)
	}
	return strings.TrimSpace(id), nil
}

// loadFacts returns what was kept of this boot; false where nothing was.
func loadFacts(disk journal.Disk, name, boot string) (facts, bool) {
	text, err := disk.Read(factsFile)
	if err != nil {
		return facts{}, false
	}
	var kept facts
	if json.Unmarshal(text, &kept) != nil || kept.Name != name || kept.BootID != boot || kept.UID == "" {
		return facts{}, false
	}
	return kept, true
}

// saveFacts keeps the facts. A disk that is full is no reason not to go on: they
// are needed only while the API server is away.
func saveFacts(disk journal.Disk, f facts) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return disk.Replace(factsFile, append(text, '\n'))
}

// errReplaced ends the service where its Node object is another one.
var errReplaced = errors.New("another Node object has this node's name now: the agent begins anew")

// checkNode returns errReplaced where the Node object is another one than the
// service began with. That it cannot be read tells nothing. What the API server
// has in memory is enough to see that nothing changed.
func (s *Service) checkNode(ctx context.Context, uid types.UID) error {
	if now, err := s.client.nodeUID(ctx, fromMemory); err != nil || now == uid {
		return nil //nolint:nilerr // it is asked again
	}
	now, err := s.client.nodeUID(ctx, live)
	if err != nil || now == uid {
		return nil //nolint:nilerr // it is asked again
	}
	return fmt.Errorf("node %s has UID %s, and had %s: %w", s.config.NodeName, now, uid, errReplaced)
}
