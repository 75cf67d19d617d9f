// Package places holds the tests that run a whole Isthmus in front of every kind of place that is not this
// machine: bare boxes of which one port or nothing but exec can be had, and another Isthmus.
package places
