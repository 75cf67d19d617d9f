// Package provider is the one suite that every adapter passes, on simulators, on test backends and on real
// accounts. It knows an adapter by the contract alone: which cases are run follows from the capabilities that
// the adapter declares, and never from its name.
package provider
