// Package filesystem is the wire contract of envd's filesystem service, generated from filesystem.proto.
package filesystem
