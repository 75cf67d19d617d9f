// Package local is the adapter for sandboxes on this machine: each box is a set of namespaces whose PID 1 is
// envd, on a root file system of its own. It needs Linux, and either root or an ordinary user with a range
// of subordinate ids.
//
// Everything that is needed to find a box again is in its folder below the data folder, so that boxes
// outlive the facade: see record.
package local
