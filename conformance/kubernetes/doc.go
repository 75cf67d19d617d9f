// Package kubernetes runs the adapter kubernetes on a real cluster of one node, which the scripts in cluster/ build
// from the Go module proxy and bring up without a container registry: the provider suite for each way to reach pods,
// on runc and gVisor, the unmodified clients through a facade, and what goes wrong in clusters.
//
// The cluster is not part of `go test ./...`: without ISTHMUS_TEST_KUBECONFIG, which `make test-kubernetes` sets, no
// case is listed.
package kubernetes
