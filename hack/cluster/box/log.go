package box

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// logTail is how much of a log goes into an error.
const logTail = 2048

// logFile is a file that a service appends to, and how long it was before.
type logFile struct {
	*os.File
	before int64
}

func openLog(path string) (*logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	before, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &logFile{file, before}, nil
}

// tail returns the end of what was appended since the log was opened.
func (l *logFile) tail() string {
	from := l.before
	if info, err := l.Stat(); err == nil {
		from = max(from, info.Size()-logTail)
	}
	text, err := io.ReadAll(io.NewSectionReader(l, from, logTail))
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return strings.TrimSpace(string(text))
}
