package binaries

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// prepare looks at what is missing: it wants room for it, and downloads it all
// at once. What takes a quarter of an hour should not end for such reasons.
func (m *maker) prepare(ctx context.Context, recipes []recipe) error {
	var missing []recipe
	var list []string
	for _, r := range recipes {
		if !m.has(r) {
			missing = append(missing, r)
			list = append(list, string(r.family()))
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := checkSpace(missing, []string{m.dir, m.golang.buildCache, m.golang.moduleCache}); err != nil {
		return err
	}
	m.log.printf("downloading what %s is made of", strings.Join(list, ", "))
	errs := make([]error, len(missing))
	var downloads sync.WaitGroup
	for i, r := range missing {
		downloads.Go(func() {
			if err := r.fetch(ctx); err != nil {
				errs[i] = fmt.Errorf("programs of %s: %w", r.family(), err)
			}
		})
	}
	downloads.Wait()
	return errors.Join(errs...)
}
