package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What our pods bear. The selectors of the watch, of lists and of network policies are made of labels; what
// nobody selects by is an annotation.
const (
	labelManaged    = "app.kubernetes.io/managed-by"
	managedBy       = "isthmus"
	labelDeployment = "isthmus.dev/deployment"
	labelBox        = "isthmus.dev/box"
	labelSandbox    = "isthmus.dev/sandbox" // a stocked box has none
	labelTeam       = "isthmus.dev/team"
	labelTemplate   = "isthmus.dev/template"
	labelFacade     = "isthmus.dev/facade" // of SandboxTemplates and SandboxWarmPools: whose they are

	annotationAttempt  = "isthmus.dev/attempt"
	annotationDeadline = "isthmus.dev/deadline" // RFC 3339
	annotationImage    = "isthmus.dev/template-name"
	annotationFit      = "isthmus.dev/fit" // what a stocked box can serve

	// Of the volume of a paused box, the first of its pod too, which ends then.
	annotationPaused    = "isthmus.dev/paused"   // since when, RFC 3339
	annotationKeptImage = "isthmus.dev/image"    // what its pod is made of again
	annotationImageID   = "isthmus.dev/image-id" // as its node had it: what was kept fits nothing else

	// Of a SandboxClaim: the UID of the pod that was proven to be its own, and when its controller was last asked to look.
	annotationPod  = "isthmus.dev/pod"
	annotationLook = "isthmus.dev/look"
)

// boxIDs are the ids that can be names of pods and values of labels.
var boxIDs = regexp.MustCompile(`^[a-z0-9]{1,40}$`)

// value makes a text the value of a label: one that cannot be is replaced by its sum.
func value(text string) string {
	if len(validation.IsValidLabelValue(text)) == 0 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// selector chooses pods of ours by one more label.
func selector(label, wanted string) string {
	return labels.Set{labelManaged: managedBy, label: value(wanted)}.String()
}
