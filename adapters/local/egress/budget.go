package egress

import "sync"

// FlowDescriptors is the most that one flow holds of the process's descriptors: two sockets, and a pipe for each
// direction through which the kernel moves the bytes.
const FlowDescriptors = 6

// Budget is how many flows of all boxes can be open at once: TCP connections, UDP flows and queries for names.
// Without it a few boxes could take all descriptors of the process, and every call of a client would fail. It
// is safe for concurrent use.
type Budget struct {
	mu   sync.Mutex
	free int
}

// NewBudget allows so many flows.
func NewBudget(flows int) *Budget { return &Budget{free: flows} }

// share is what one box has of a budget.
type share struct {
	budget *Budget
	held   int // guarded by the budget's lock
}

// take takes one flow. A box gets no more than half of what is left for the others: alone it can have a third of
// the budget, and however many boxes take all they can, there is something left for the next one.
func (s *share) take() bool {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	if 2*s.held >= s.budget.free {
		return false
	}
	s.held++
	s.budget.free--
	return true
}

// give gives one flow back.
func (s *share) give() {
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.held--
	s.budget.free++
}
