package kubernetes

import (
	"context"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// lookAgain is how long nothing is heard of a pod before it is asked for: a watch that broke says nothing.
const lookAgain = 3 * time.Second

// follow knows the pods of the pool as the one watch tells of them.
type follow struct {
	informer cache.SharedInformer

	mu   sync.Mutex
	pods map[string]*followed // by name
	box  map[string]string    // names by box id
	// whys are the last ends, by box id, in the order of ends.
	whys map[string]string
	ends []string
	bare map[string]bool // those of which the cluster itself has given no reason, so far
}

// followed is one pod.
type followed struct {
	pod *corev1.Pod
	// changed is closed at the next change, ended once the pod has ended or is being deleted, gone when its object
	// is not there any more.
	changed, ended, gone chan struct{}
	once                 sync.Once
}

func newFollow(c *Cluster) *follow {
	ours := labels.Set{labelManaged: managedBy}.String()
	pods := c.core.Pods(c.config.Namespace)
	f := &follow{pods: map[string]*followed{}, box: map[string]string{}, whys: map[string]string{}, bare: map[string]bool{}}
	f.informer = cache.NewSharedInformer(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = ours
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = ours
			return pods.Watch(ctx, o)
		},
	}, &corev1.Pod{}, 0)
	_, _ = f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{ // it fails only for an informer that was stopped
		AddFunc:    func(o any) { f.note(o) },
		UpdateFunc: func(_, o any) { f.note(o) },
		DeleteFunc: func(o any) {
			if last, is := o.(cache.DeletedFinalStateUnknown); is {
				o = last.Obj
			}
			if pod, is := o.(*corev1.Pod); is {
				f.lost(pod.Name, string(pod.UID))
			}
		},
	})
	return f
}

func (f *follow) run(ctx context.Context) { f.informer.RunWithContext(ctx) }

func (f *follow) note(o any) {
	if pod, is := o.(*corev1.Pod); is {
		f.put(pod)
	}
}

// put takes over what is known of a pod, unless something newer is.
func (f *follow) put(pod *corev1.Pod) *followed {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.pods[pod.Name]
	if one == nil || one.pod.UID != pod.UID {
		if one != nil {
			f.left(one)
			close(one.gone)
		}
		one = &followed{changed: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{})}
		f.pods[pod.Name] = one
	} else if version(pod) <= version(one.pod) {
		return one
	} else if was := one.pod.Labels[labelBox]; was != pod.Labels[labelBox] && f.box[was] == pod.Name {
		delete(f.box, was)
	}
	one.pod = pod
	f.box[pod.Labels[labelBox]] = pod.Name
	if over(pod) {
		f.left(one)
	}
	close(one.changed)
	one.changed = make(chan struct{})
	return one
}

// lost forgets a pod whose object is gone.
func (f *follow) lost(name, uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.pods[name]
	if one == nil || string(one.pod.UID) != uid {
		return
	}
	delete(f.pods, name)
	if box := one.pod.Labels[labelBox]; f.box[box] == name {
		delete(f.box, box)
	}
	f.left(one)
	close(one.gone)
	close(one.changed)
}

// left tells of the end of a box with its pod, unless the box is paused.
func (f *follow) left(one *followed) {
	if !marked(one.pod) {
		f.over(one.pod)
		one.end()
	}
}

// over remembers for a while what ended a pod. The first word on it counts, for what ended is deleted then, but that of
// the cluster itself counts more than how a process ended.
func (f *follow) over(pod *corev1.Pod) {
	box := pod.Labels[labelBox]
	if f.whys[box] != "" {
		if f.bare[box] && reason(pod) != "" {
			f.whys[box] = why(pod)
			delete(f.bare, box)
		}
		return
	}
	if over(pod) && reason(pod) == "" && pod.DeletionTimestamp == nil {
		f.bare[box] = true
	}
	f.whys[box] = why(pod)
	if !over(pod) {
		f.whys[box] = "its pod was deleted"
	}
	if f.ends = append(f.ends, box); len(f.ends) > endsKept {
		delete(f.whys, f.ends[0])
		delete(f.bare, f.ends[0])
		f.ends = f.ends[1:]
	}
}

// why returns what ended a box; empty: not known, or not any more.
func (f *follow) why(boxID string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.whys[boxID]
}

func (o *followed) end() { o.once.Do(func() { close(o.ended) }) }

// of returns what is known of a box; nil: nothing.
func (f *follow) of(boxID string) (*followed, *corev1.Pod) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := f.pods[f.box[boxID]]
	if one == nil {
		return nil, nil
	}
	return one, one.pod
}

// all returns what is known, for a look at each.
func (f *follow) all() []*corev1.Pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := make([]*corev1.Pod, 0, len(f.pods))
	for _, one := range f.pods {
		list = append(list, one.pod)
	}
	return list
}

// state returns a pod as it is now, and what is closed when that is so no more.
func (f *follow) state(one *followed) (pod *corev1.Pod, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return one.pod, one.changed
}

// version is how new an object is: versions of one kind of object can be compared.
func version(pod *corev1.Pod) uint64 {
	n, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	return n
}
