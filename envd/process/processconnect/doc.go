// Package processconnect has the Connect client and handler of the process service, generated from
// process.proto.
package processconnect
