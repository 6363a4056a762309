package driver

import (
	"context"
	"io"
	"path/filepath"

	"railhead/hack/cluster/binaries"
	"railhead/hack/cluster/image"
)

// Program is the path of a program that clusters are made of (kubectl),
// which is built if need be.
func Program(ctx context.Context, name string) (string, error) {
	set, err := binaries.Ensure(ctx, io.Discard)
	if err != nil {
		return "", err
	}
	return set.Path(name)
}

func (c *Cluster) imageConfig() (image.Config, error) {
	cache, err := binaries.CacheDir("cluster")
	if err != nil {
		return image.Config{}, err
	}
	coredns, err := c.programs.Path("coredns")
	return image.Config{Cache: filepath.Join(cache, "images"), CoreDNS: coredns, Progress: &c.progress}, err
}
