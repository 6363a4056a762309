// Package certificates has the webhooks' serving certificate. A Keeper makes it,
// and a CA of its own, shares both with the other replicas in one Secret and
// replaces them long before they expire; Files takes what cert-manager or a person
// puts into a directory. Both serve from memory, and a new certificate without a
// restart. It never tells the API server whom to trust:
// internal/webhook/registration does, and says so when it has.
package certificates
