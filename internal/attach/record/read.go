package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"railhead/internal/ipam/journal"
)

// Read returns the attachments that a file has, the oldest first, while an agent
// may be writing it: a last line that is not whole yet is DamageTail. After
// DamageCorrupt, lines may be missing. Where there is no file, the error is
// fs.ErrNotExist. It changes nothing, and needs to read the file alone.
func Read(files fs.FS, name string) ([]Attachment, journal.Damage, error) {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, journal.DamageNone, fmt.Errorf("record of attachments: %w", err)
	}
	_, lines, damage, err := journal.Open[json.RawMessage](image(data), name)
	if err != nil {
		return nil, damage, err
	}
	if damage == journal.DamageCorrupt {
		lines = salvage(data)
	}
	m := newMemory()
	for _, raw := range lines {
		m.apply(raw)
	}
	return m.attachments(), damage, nil
}

// salvage are all whole lines of a damaged journal. Those behind the damage count
// too: what was removed in a line that is lost is undone twice, which changes
// nothing; what is forgotten would never be undone.
func salvage(data []byte) []json.RawMessage {
	var lines []json.RawMessage
	for one := range bytes.Lines(data) {
		_, read, _, err := journal.Open[json.RawMessage](image(one), "line")
		if err == nil {
			lines = append(lines, read...)
		}
	}
	return lines
}

// image is a disk with one file that is not written.
type image []byte

var errReadOnly = errors.New("is only read")

func (i image) Read(string) ([]byte, error) { return i, nil }
func (image) Append(string, []byte) error   { return errReadOnly }
func (image) Sync(string) error             { return nil }
func (image) Truncate(string, int64) error  { return nil }
func (image) Replace(string, []byte) error  { return errReadOnly }

var _ journal.Disk = image(nil)
