// Package fleet holds the use cases: create, find, keep, end a sandbox, and reach it. It binds sandboxes to
// boxes durably, ends them in time, repairs what a crash left, and is the only caller of adapters.
package fleet
