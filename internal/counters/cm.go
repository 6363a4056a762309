package counters

import "strings"

// cmSet makes a row of each message in each directory of ib_cm.
func cmSet() set {
	s := set{source: cmFiles}
	for _, dir := range cmDirs {
		for message := range strings.FieldsSeq(cmMessages) {
			s.rows = append(s.rows, row{key: cmKey(dir.name, message), tier: Slow, feeds: []string{dir.feeds + message}})
		}
	}
	return s
}

// cmKey tells apart the files of one name in several directories.
func cmKey(dir, file string) string { return dir + "/" + file }
