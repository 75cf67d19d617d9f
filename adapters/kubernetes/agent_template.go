package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/isthmus/isthmus/adapters"
	"github.com/isthmus/isthmus/envd"
)

// shelveAgain is the pause between two tries to make what claims are served from.
const shelveAgain = 5 * time.Second

// bornAs is the id whose control secret the envd of a template's pods waits for: a pod that is made ahead does not know
// whose box it will be. No box has such an id.
func bornAs(template string) string { return "template " + template }

// shelf is the name of the SandboxTemplate and the SandboxWarmPool of a template. Facades with other secrets have others.
func (c *Cluster) shelf(template string) string { return "isthmus-" + c.mark(bornAs(template))[:20] }

// mark is a text that only a facade with our secrets has, and that gives nothing away.
func (c *Cluster) mark(id string) string {
	_, control := c.config.Secrets(id)
	sum := sha256.Sum256([]byte(envd.ControlSum(control)))
	return hex.EncodeToString(sum[:])
}

// shelve makes the SandboxTemplate and the SandboxWarmPool of a template what the configuration says, unless it has.
func (c *Cluster) shelve(ctx context.Context, template adapters.Template, image string, ready int) error {
	c.shelving.Lock()
	defer c.shelving.Unlock()
	if c.shelved[template.Name] {
		return nil
	}
	name := c.shelf(template.Name)
	if err := c.apply(ctx, agentTemplates, "SandboxTemplate", name, template.Name, c.agentTemplate(template, image)); err != nil {
		return err
	}
	pool := map[string]any{
		"replicas": ready, "sandboxTemplateRef": map[string]any{"name": name}, "updateStrategy": map[string]any{"type": "Recreate"},
	}
	if err := c.apply(ctx, agentPools, "SandboxWarmPool", name, template.Name, pool); err != nil {
		return err
	}
	c.shelved[template.Name] = true
	return nil
}

// unshelved makes the next create look again at what claims of a template are served from.
func (c *Cluster) unshelved(template string) {
	c.shelving.Lock()
	defer c.shelving.Unlock()
	delete(c.shelved, template)
}

// agentTemplate is the specification of a SandboxTemplate: the pod of a box that is nobody's yet. A limit of a pod's life
// would count from when it was made ahead, so the claim has it.
func (c *Cluster) agentTemplate(template adapters.Template, image string) map[string]any {
	pod := c.pod(adapters.Spec{BoxID: bornAs(template.Name), Template: template, Resources: c.config.Default}, image)
	pod.Spec.ActiveDeadlineSeconds = nil
	return map[string]any{
		"podTemplate": map[string]any{"spec": pod.Spec, "metadata": map[string]any{"labels": map[string]string{labelTemplate: template.ID}}},
		// The project's own policy lets nobody but its router reach pods. Ours is the chart's, for the namespace.
		"networkPolicyManagement": "Unmanaged",
		"service":                 false,
	}
}

// apply makes an object what it should be, in one step.
func (c *Cluster) apply(ctx context.Context, of schema.GroupVersionResource, kind, name, template string, spec map[string]any) error {
	text, err := json.Marshal(map[string]any{
		"apiVersion": of.GroupVersion().String(), "kind": kind, "spec": spec, "metadata": map[string]any{
			"name": name, "labels": map[string]string{labelManaged: managedBy, labelFacade: c.owner()}, "annotations": map[string]string{annotationImage: template},
		},
	})
	if err != nil {
		return adapters.Wrap(adapters.KindInternal, err, "a "+kind+" cannot be written")
	}
	force := true
	_, err = c.agentsOf(of).Patch(ctx, name, types.ApplyPatchType, text, metav1.PatchOptions{FieldManager: fieldManager, Force: &force})
	return classify(ctx, err, "does not take the pool's "+kind, true)
}

// owner is the value of the label by which a facade knows its own SandboxTemplates and SandboxWarmPools.
func (c *Cluster) owner() string { return c.mark("templates")[:32] }

// unshelve removes what claims of a template were served from. Boxes stay.
func (c *Cluster) unshelve(ctx context.Context, name string) error {
	var failures []error
	for _, of := range []schema.GroupVersionResource{agentPools, agentTemplates} {
		if err := c.agentsOf(of).Delete(ctx, name, metav1.DeleteOptions{}); !absent(err) {
			failures = append(failures, classify(ctx, err, "does not remove a "+of.Resource, false))
		}
	}
	return errors.Join(failures...)
}

// shelveAll makes what the claims of all templates are served from, and removes that of templates which are not
// configured any more, until it has done so or ctx ends.
func (c *Cluster) shelveAll(ctx context.Context) {
	for {
		err := c.shelveOnce(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		c.log.Warn("sandboxes cannot be made ahead yet", "err", err)
		if wait(ctx, shelveAgain) != nil {
			return
		}
	}
}

func (c *Cluster) shelveOnce(ctx context.Context) error {
	var failures []error
	wanted := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.config.Templates)) {
		wanted[c.shelf(name)] = true
		failures = append(failures, c.shelve(ctx, c.template(name, c.config.Templates[name]), c.config.Templates[name], c.config.Warm[name]))
	}
	list, err := c.agentsOf(agentPools).List(ctx, metav1.ListOptions{LabelSelector: selector(labelFacade, c.owner())})
	if err != nil {
		return errors.Join(append(failures, classify(ctx, err, "does not list its SandboxWarmPools", false))...)
	}
	for i := range list.Items {
		if name := list.Items[i].GetName(); !wanted[name] {
			failures = append(failures, c.unshelve(ctx, name))
		}
	}
	return errors.Join(failures...)
}
