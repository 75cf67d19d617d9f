package badger

import badgerdb "github.com/dgraph-io/badger/v4"

const (
	// fewTables are so few that reading goes through all of them without harm.
	fewTables = 4
	// manyTables are so many that they are merged whatever that costs.
	manyTables = 16
	// growth is the part of a store, 1/growth, that new tables must come to before everything is written anew.
	growth = 4
)

// merge makes one level of all tables when enough new ones have come since the last time. While the disk has no room
// it leaves them as they are: merging writes before it frees.
func (e *Engine) merge() {
	if e.room.low() || !ripe(e.db.Levels()) {
		return
	}
	if err := e.db.Flatten(1); err != nil {
		e.room.log.Warn("the tables of the store could not be merged: it is tried again", "err", err)
	}
}

// ripe reports whether the tables of the first level, as each was written, are worth a merge with all others.
func ripe(levels []badgerdb.LevelInfo) bool {
	var older int64
	for _, level := range levels[1:] {
		older += level.Size
	}
	fresh := levels[0]
	return fresh.NumTables >= manyTables || fresh.NumTables >= fewTables && fresh.Size*growth >= older
}
