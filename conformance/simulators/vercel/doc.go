//go:build linux

// Package vercel is a server of the Vercel Sandbox protocol for tests and rehearsals: its sandboxes are boxes of
// this machine (conformance/simulators/machine). It keeps the rules that the cloud keeps: one name in a project,
// sessions that end at their time-out, snapshots that stop the session, ports that are declared, the limits of a
// plan. What goes wrong in it is chosen by faults.
//
// The vendor's own SDKs, unmodified, prove it: see conformance/harness, part clients. Both generations of the API
// are served, /v2 and /v3, below / and below /api.
package vercel
