// Package badger is the embedded engine of store/kv: Badger, tuned for a few megabytes of small records.
//
// Writes are not synced to the disk one by one: they survive the death of the process at any instruction,
// because Badger's log is mapped memory that the kernel keeps, but a power loss may cost the last moments.
// Reconciling with the providers repairs those.
package badger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/isthmus/isthmus/store/kv"
)

// ErrLocked is returned by Open when another process has the folder open.
var ErrLocked = errors.New("the store is open in another process")

// gcEvery is how often the value log is looked through for garbage. Values are small, so there is little.
const gcEvery = 10 * time.Minute

// maxValue is the size from which values would go to Badger's value log, which no room is kept for. It is about
// what fits into a transaction.
const maxValue = 1 << 20

// Engine is one open folder.
type Engine struct {
	db   *badgerdb.DB
	room *room
}

var _ kv.Engine = (*Engine)(nil)

// tendEvery is how often the room on the disk is looked after while nothing is written.
const tendEvery = 5 * time.Second

// Open opens or creates the folder. It never removes anything that it cannot read: the error then says so. On a disk
// without room it is kv.ErrFull. Badger's own compactors look for work twenty times a second each, which is what an idle
// process would be busy with, so there are none: Run merges tables.
func Open(dir string, log *slog.Logger) (*Engine, error) {
	opts := badgerdb.DefaultOptions(dir).
		WithLogger(logger{log}).
		WithSyncWrites(false).
		WithMemTableSize(tableSize).
		WithNumMemtables(2).
		WithNumLevelZeroTables(2).
		WithNumLevelZeroTablesStall(1 << 20).
		WithNumCompactors(0).
		WithBaseTableSize(2 << 20).
		WithBlockCacheSize(4 << 20).
		WithIndexCacheSize(2 << 20).
		WithValueThreshold(maxValue).
		WithValueLogFileSize(32 << 20).
		WithMetricsEnabled(false)
	room := newRoom(dir, log)
	if err := room.beforeOpen(); err != nil {
		return nil, errors.Join(err, room.unlock())
	}
	db, err := badgerdb.Open(opts)
	if err != nil {
		return nil, errors.Join(openError(dir, err), room.unlock())
	}
	room.opened()
	return &Engine{db: db, room: room}, nil
}

// View implements kv.Engine.
func (e *Engine) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.db.View(func(t *badgerdb.Txn) error { return fn(tx{txn: t}) })
}

// Update implements kv.Engine.
func (e *Engine) Update(ctx context.Context, fn func(kv.Tx) error) error {
	for attempt := 0; ; attempt++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.room.admit(); err != nil {
			return err
		}
		t := tx{}
		err := e.db.Update(func(txn *badgerdb.Txn) error {
			t = tx{txn: txn, wrote: new(int64)}
			return fn(t)
		})
		if !errors.Is(err, badgerdb.ErrConflict) {
			if err == nil {
				e.room.wrote(*t.wrote)
			}
			return mapError(err)
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

// Backup implements kv.Engine.
func (e *Engine) Backup(ctx context.Context, w io.Writer) error {
	_, err := e.db.Backup(contextWriter{ctx, w}, 0)
	return err
}

// Load implements kv.Engine.
func (e *Engine) Load(ctx context.Context, r io.Reader) error {
	const pendingWrites = 16
	if e.room.low() {
		return kv.ErrFull
	}
	return e.db.Load(contextReader{ctx, r}, pendingWrites)
}

// Run implements kv.Engine.
func (e *Engine) Run(ctx context.Context) error {
	tick, tend := time.NewTicker(gcEvery), time.NewTicker(tendEvery)
	defer tick.Stop()
	defer tend.Stop()
	for {
		e.room.tend()
		e.merge()
		select {
		case <-ctx.Done():
			return nil
		case <-tend.C:
		case <-e.room.begun:
		case <-tick.C:
			if e.room.low() {
				continue // it writes before it frees
			}
			for ctx.Err() == nil && e.db.RunValueLogGC(0.5) == nil {
			}
		}
	}
}

// Low implements kv.Engine.
func (e *Engine) Low() bool { return e.room.low() }

// Close implements kv.Engine. On a disk without room the log stays as it is, which the next Open reads.
func (e *Engine) Close() error {
	if !e.room.beforeClose() {
		e.room.log.Warn("the disk of the data folder is full: the store is left as after a crash, which loses nothing", "folder", e.room.dir)
		return nil
	}
	return errors.Join(e.db.Close(), e.room.closed(), e.room.unlock())
}

// pause waits a little longer with each conflict, and never the same time twice, so that rivals part.
func pause(ctx context.Context, attempt int) error {
	limit := min(time.Duration(attempt+1)*200*time.Microsecond, 10*time.Millisecond)
	timer := time.NewTimer(rand.N(limit))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func mapError(err error) error {
	switch {
	case errors.Is(err, badgerdb.ErrKeyNotFound):
		return kv.ErrNotFound
	case errors.Is(err, badgerdb.ErrTxnTooBig):
		return kv.ErrTooBig
	}
	return err
}

func openError(dir string, err error) error {
	if isLocked(err) {
		return fmt.Errorf("%w: %s", ErrLocked, dir)
	}
	return fmt.Errorf("the store in %s cannot be opened and was left as it is: %w\n"+
		"Move the folder aside, bring its records back with `isthmus restore` from a backup, and start again. "+
		"Without a backup a start goes on with an empty store. Sandboxes that the store does not know are ended", dir, err)
}
