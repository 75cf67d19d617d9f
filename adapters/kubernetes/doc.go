// Package kubernetes runs every sandbox as a Pod of a cluster. Kubernetes does the scheduling; there are no CRDs.
//
// A pod's only container is the template's image, any OCI image, with envd as its first process: envd comes in a
// volume beside it (Delivery), waits, and is told its configuration by the facade, so no secret is in an object of
// the cluster. The box id is the pod's name and a label; a pod that was made ahead keeps its name and gets the
// label when it is claimed, by a patch that holds only for the version that was seen.
//
// How the facade reaches envd is found out per pool (Reach): by the pod's address, by port-forward, or by one
// stream of pods/exec. One watch per pool tells what became of pods; it replaces all polling.
package kubernetes
