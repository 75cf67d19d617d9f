package process

import (
	"sync"
	"sync/atomic"
)

// chunk is the bytes of one message of output. It is used again once everybody who was given it has released it:
// new memory for each message would keep the garbage collector busy with little else.
type chunk struct {
	bytes   [maxOutput]byte
	size    int
	holders atomic.Int32
	from    *chunks
}

// hold adds holders, each of whom must release it.
func (c *chunk) hold(more int) { c.holders.Add(int32(more)) }

// release gives it back. Nobody may look at its bytes afterwards. Of a nil chunk there is nothing to give back.
func (c *chunk) release() {
	if c != nil && c.holders.Add(-1) == 0 {
		c.from.pool.Put(c)
	}
}

// chunks are those that nobody holds.
type chunks struct {
	pool sync.Pool
}

// take returns a chunk with one holder.
func (s *chunks) take() *chunk {
	c, ok := s.pool.Get().(*chunk)
	if !ok {
		c = &chunk{from: s}
	}
	c.holders.Store(1)
	return c
}
