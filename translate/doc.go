// Package translate turns E2B's wire values into ours and back: requests into placement requests, records
// into answers, cursors and metadata filters, the one table of errors and the one table of fields. All of it
// is pure: no I/O, no clock, no state.
package translate
