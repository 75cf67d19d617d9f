// Package filesystemconnect has the Connect client and handler of the filesystem service, generated from
// filesystem.proto.
package filesystemconnect
