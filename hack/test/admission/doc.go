// Package admission tests what the API server decides by itself, with the API
// server's own code and without one that runs: the schemas and CEL rules of our
// definitions, and which requests reach the webhooks that the controller registers.
package admission
