// Package store keeps Isthmus's records, one file per kind, over the ordered key-value contract of store/kv.
// It knows nothing of wires, providers or HTTP.
package store
