package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
)

// A frame is a line, so that the file can be read with cat:
//
//	<length of the JSON, 8 hex digits> <CRC-32C of length and JSON, 8 hex digits> <JSON>\n
const (
	digits = 8
	header = digits + 1 + digits + 1
)

// writer makes frames in a buffer that it uses again.
type writer struct {
	frames bytes.Buffer
	json   *json.Encoder // into frames
}

func newWriter() *writer {
	w := &writer{}
	w.json = json.NewEncoder(&w.frames)
	return w
}

// write adds the frame of a record.
func (w *writer) write(record any) error {
	begin := w.frames.Len()
	w.frames.WriteString("........ ........ ")
	if err := w.json.Encode(record); err != nil { // with a newline at its end, and none within
		w.frames.Truncate(begin)
		return fmt.Errorf("journal: record %+v: %w", record, err)
	}
	line := w.frames.Bytes()[begin:]
	body := line[header : len(line)-1]
	var raw [digits]byte // two numbers of 4 bytes
	binary.BigEndian.PutUint32(raw[:], uint32(len(body)))
	binary.BigEndian.PutUint32(raw[digits/2:], checksum(body))
	hex.Encode(line, raw[:digits/2])
	hex.Encode(line[digits+1:], raw[digits/2:])
	return nil
}

// checksum is over the length and the JSON.
func checksum(body []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	var length [digits / 2]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(body)))
	return crc32.Update(crc32.Checksum(length[:], table), table, body)
}

// frame returns the JSON of the frame that data begins with, and its size with
// all around it; ok is false if data begins with no whole and right frame.
func frame(data []byte) (body []byte, size int, ok bool) {
	if len(data) < header+1 || data[digits] != ' ' || data[header-1] != ' ' {
		return nil, 0, false
	}
	length, ok1 := number(data[:digits])
	sum, ok2 := number(data[digits+1 : header-1])
	size = header + int(length) + 1
	if !ok1 || !ok2 || size > len(data) || data[size-1] != '\n' {
		return nil, 0, false
	}
	body = data[header : size-1]
	return body, size, checksum(body) == sum
}

// number reads 8 lower-case hex digits.
func number(text []byte) (uint32, bool) {
	var raw [digits / 2]byte
	if _, err := hex.Decode(raw[:], text); err != nil || bytes.ContainsAny(text, "ABCDEF") {
		return 0, false
	}
	return binary.BigEndian.Uint32(raw[:]), true
}

// records reads frames up to the first that is not whole, and says how many
// bytes of data those before it are.
func records[R any](data []byte) (all []R, intact int) {
	for intact < len(data) {
		body, size, ok := frame(data[intact:])
		if !ok {
			break
		}
		var r R
		if err := json.Unmarshal(body, &r); err != nil {
			break
		}
		all = append(all, r)
		intact += size
	}
	return all, intact
}

// damage says what comes after the intact beginning of a file: a crash while
// appending leaves part of a frame and no frame after it.
func damage(rest []byte) Damage {
	if len(rest) == 0 {
		return DamageNone
	}
	if _, _, ok := frame(rest); ok {
		return DamageCorrupt // right, but no record of ours
	}
	for {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return DamageTail
		}
		rest = rest[end+1:]
		if _, _, ok := frame(rest); ok {
			return DamageCorrupt
		}
	}
}
