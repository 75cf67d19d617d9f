// Package structure holds the rules of the house as tests: which folder may import which, that every package
// is documented, and how long functions and files may be. It has no code of its own.
package structure
