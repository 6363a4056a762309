package image

import (
	"runtime"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/renameio/v2"
)

// command is what a container of an image runs when its pod does not say: program and arguments are replaced apart.
type command struct {
	program   []string
	arguments []string
}

// searchPath is where the tools are.
const searchPath = "PATH=/usr/local/bin:/usr/sbin:/usr/bin"

// write writes an image with one layer. The layer is not compressed: it goes no further than this machine.
func write(archive, imageName string, t tree, run command) error {
	// Strict validation takes localhost for a part of the path; the archive has the name as it was given.
	tag, err := name.NewTag(imageName, name.WeakValidation)
	if err != nil {
		return err
	}
	content, err := t.layer()
	if err != nil {
		return err
	}
	image, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:   static.NewLayer(content, types.DockerUncompressedLayer),
		History: v1.History{Created: epoch(), CreatedBy: "railhead"},
	})
	if err != nil {
		return err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = runtime.GOARCH, "linux", epoch()
	config.Config = v1.Config{Env: []string{searchPath}, Entrypoint: run.program, Cmd: run.arguments, WorkingDir: "/"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return err
	}
	out, err := renameio.NewPendingFile(archive, renameio.WithPermissions(0o644))
	if err != nil {
		return err
	}
	defer func() { _ = out.Cleanup() }()
	if err := tarball.Write(tag, image, out); err != nil {
		return err
	}
	return out.CloseAtomicallyReplace()
}

// epoch is when everything in an image was made.
func epoch() v1.Time { return v1.Time{Time: time.Unix(0, 0).UTC()} }
