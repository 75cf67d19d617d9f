#!/bin/sh
# Writes openapi.gen.go from openapi.yaml. CI runs it and expects no change.
set -eu
cd "$(dirname "$0")"
go tool -modfile=../.ci/tools.mod oapi-codegen -config config.yaml openapi.yaml
