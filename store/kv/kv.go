// Package kv is the contract of an ordered key-value engine with serializable transactions. Everything that
// Isthmus must not forget is kept over it; an engine is a package below this one.
package kv

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// ErrNotFound is returned by Get for a key that is not there.
var ErrNotFound = errors.New("kv: key not found")

// ErrTooBig is returned when a value or a transaction is larger than the engine takes. About 1 MiB always fits.
var ErrTooBig = errors.New("kv: the transaction is too big")

// ErrFull is returned by changes, and by opening, when the disk has no room for them. Nothing is lost or broken.
var ErrFull = errors.New("the disk of the data folder is full")

// Engine keeps keys in byte order. All methods are safe for concurrent use.
type Engine interface {
	// View runs fn over one consistent snapshot.
	View(ctx context.Context, fn func(Reader) error) error
	// Update runs fn in a transaction which is committed when fn returns nil. When another transaction
	// changed a key that fn had read, fn is run again on a new snapshot until ctx ends: it must have no
	// effect outside the transaction that cannot be repeated.
	Update(ctx context.Context, fn func(Tx) error) error
	// Backup writes everything as of now. The format is the engine's own.
	Backup(ctx context.Context, w io.Writer) error
	// Load adds what Backup wrote. Keys that are there already are overwritten.
	Load(ctx context.Context, r io.Reader) error
	// Low reports that the disk is almost full, so that what can be done without should not be written.
	Low() bool
	// Run does the engine's housekeeping until ctx ends.
	Run(ctx context.Context) error
	// Close must be called once, after every other call has returned.
	Close() error
}

// Reader reads within one transaction. It must not be kept, and is for one goroutine.
type Reader interface {
	// Get returns a copy of the value, or ErrNotFound.
	Get(key string) ([]byte, error)
	// Scan yields the entries of a range in order. An error ends the sequence. Only one Scan may be open at
	// a time in a transaction. Update sees conflicts on the entries that were yielded, but not on ones that
	// others add to the range meanwhile: where that matters, both sides write one common key.
	Scan(r Range) iter.Seq2[Entry, error]
}

// Tx reads and writes within one transaction.
type Tx interface {
	Reader
	// Set stores a value. A ttl above 0 makes the entry vanish after it, to the second.
	Set(key string, value []byte, ttl time.Duration) error
	// Delete removes a key. One that is not there is success.
	Delete(key string) error
}

// Range selects the keys that start with Prefix.
type Range struct {
	Prefix string
	// From is the first key, inclusive, in the direction of the scan; empty: from the range's end on that
	// side. It must start with Prefix.
	From string
	// Reverse scans downwards.
	Reverse bool
	// KeysOnly leaves values out.
	KeysOnly bool
}

// Entry is one key and a copy of its value.
type Entry struct {
	Key   string
	Value []byte
}
