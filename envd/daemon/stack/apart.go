// Package stack keeps the stacks of goroutines that live long small. A stack grows for what needs a large one and
// hardly ever becomes smaller again: of a call that streams for hours it stays for hours.
package stack

// Apart calls a function on a stack of its own and returns when it has returned. A panic goes on in the caller.
func Apart(do func()) {
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		do()
	}()
	if failure := <-done; failure != nil {
		panic(failure)
	}
}
