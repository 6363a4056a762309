// Package manifest says what is written in a manifest: one JSON or YAML document
// becomes an object of the API, or a list of all that is wrong with how it is
// written, with paths and with the names that were probably meant. Whether what
// is written makes sense is for package policy to say.
//
// The API server would drop unknown fields, and name the first wrong type only;
// admission and the command line ask here instead and say the same. It reads no
// API and no file.
//
// Source: YAML as kubectl reads it (1.1: yes and on are true), JSON of RFC 8259.
package manifest
