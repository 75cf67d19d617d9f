//go:build linux

package machine

// Abandon lets go of the boxes as the end of the process would.
func (c *Cloud) Abandon() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.end()
	c.work.Wait()
	return c.local.Close()
}
