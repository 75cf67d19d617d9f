// Package process is the wire contract of envd's process service, generated from process.proto.
package process
