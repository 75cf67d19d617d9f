#!/bin/sh
# Regenerates the Go code of envd's two services. Running it on a clean tree leaves a clean tree.
#
# buf is not a Go module that we could pin in .ci/tools.mod at a bearable size, but its npm package ships the
# binary; the two plugins are pinned in .ci/tools.mod.
set -eu
version=1.75.0
cd "$(dirname "$0")"
home=../.tmp/buf-$version
if [ ! -x "$home/node_modules/.bin/buf" ]; then
	mkdir -p "$home"
	npm install --silent --no-audit --no-fund --no-save --prefix "$home" "@bufbuild/buf@$version"
fi
"$home/node_modules/.bin/buf" lint
exec "$home/node_modules/.bin/buf" generate
