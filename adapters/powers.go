package adapters

// Powers are the optional interfaces of one provider; those that it lacks are nil.
type Powers struct {
	Extender    Extender
	Meter       Meter
	Journal     Journal
	Watcher     Watcher
	Explainer   Explainer
	Stocker     Stocker
	Bootable    Bootable
	Native      Native
	Pauser      Pauser
	Snapshotter Snapshotter
	Networker   Networker
}

// Wrapper is a provider around another one. It says itself which powers it has, because a struct that
// implements an interface does so whatever is inside it.
type Wrapper interface {
	Provider
	// Powers returns the powers of the wrapper: for each power of what is inside one of its own.
	Powers() Powers
}

// PowersOf finds the optional powers of a provider, once at the start.
func PowersOf(p Provider) Powers {
	if w, ok := p.(Wrapper); ok {
		return w.Powers()
	}
	var found Powers
	found.Extender, _ = p.(Extender)
	found.Meter, _ = p.(Meter)
	found.Journal, _ = p.(Journal)
	found.Watcher, _ = p.(Watcher)
	found.Explainer, _ = p.(Explainer)
	found.Stocker, _ = p.(Stocker)
	found.Bootable, _ = p.(Bootable)
	found.Native, _ = p.(Native)
	found.Pauser, _ = p.(Pauser)
	found.Snapshotter, _ = p.(Snapshotter)
	found.Networker, _ = p.(Networker)
	return found
}
