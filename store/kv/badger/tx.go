package badger

import (
	"iter"
	"time"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/isthmus/isthmus/store/kv"
)

// tx is both kv.Reader and kv.Tx; Badger itself refuses writes in a read-only transaction.
type tx struct {
	txn *badgerdb.Txn
	// wrote is how much the log and the table in memory may grow, in bytes. Nil when reading.
	wrote *int64
}

// overhead is more than an entry takes beside its key and value: the node of the table in memory, the header and
// the sum in the log, and its part of the transaction's end.
const overhead = 256

func (t tx) Get(key string) ([]byte, error) {
	item, err := t.txn.Get([]byte(key))
	if err != nil {
		return nil, mapError(err)
	}
	return item.ValueCopy(nil)
}

func (t tx) Set(key string, value []byte, ttl time.Duration) error {
	if len(value) >= maxValue {
		return kv.ErrTooBig
	}
	t.count(len(key) + len(value))
	entry := badgerdb.NewEntry([]byte(key), value)
	if ttl > 0 {
		entry = entry.WithTTL(ttl)
	}
	return mapError(t.txn.SetEntry(entry))
}

func (t tx) Delete(key string) error {
	t.count(len(key))
	return mapError(t.txn.Delete([]byte(key)))
}

func (t tx) count(bytes int) {
	if t.wrote != nil {
		*t.wrote += int64(bytes + overhead)
	}
}

func (t tx) Scan(r kv.Range) iter.Seq2[kv.Entry, error] {
	return func(yield func(kv.Entry, error) bool) {
		opts := badgerdb.DefaultIteratorOptions
		opts.Reverse = r.Reverse
		opts.PrefetchValues = false
		opts.Prefix = []byte(r.Prefix)
		it := t.txn.NewIterator(opts)
		defer it.Close()
		for it.Seek(start(r)); it.ValidForPrefix(opts.Prefix); it.Next() {
			entry, err := read(it.Item(), r.KeysOnly)
			if !yield(entry, err) || err != nil {
				return
			}
		}
	}
}

// start is where the iterator is put: downwards that is behind the last key that has the prefix.
func start(r kv.Range) []byte {
	switch {
	case r.From != "":
		return []byte(r.From)
	case r.Reverse:
		return append([]byte(r.Prefix), 0xff)
	}
	return []byte(r.Prefix)
}

func read(item *badgerdb.Item, keysOnly bool) (kv.Entry, error) {
	entry := kv.Entry{Key: string(item.Key())}
	if keysOnly {
		return entry, nil
	}
	var err error
	entry.Value, err = item.ValueCopy(nil)
	return entry, err
}
