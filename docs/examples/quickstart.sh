#!/usr/bin/env bash
# Starts Isthmus on this machine, runs one unmodified E2B program in Python and one in JavaScript through
# it, shows what happened, and stops. `make quickstart` builds first.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=.tmp/quickstart
mkdir -p "$work"

echo "== the E2B SDKs, from their registries"
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check e2b==2.63.0
cp docs/examples/hello.mjs "$work/hello.mjs"
(cd "$work" && npm install --silent --no-audit --no-fund --no-package-lock --no-save e2b@2.51.0 >/dev/null)

echo "== isthmus serve (the first start builds the root file system, which takes a minute)"
bin/isthmus serve --data "$work/data" --listen 127.0.0.1:3000 --kill-on-exit >"$work/serve.log" 2>&1 &
server=$!
stop() { kill -TERM "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; }
trap stop EXIT
until grep -q '^export E2B_API_URL' "$work/serve.log"; do
  kill -0 "$server" 2>/dev/null || { cat "$work/serve.log" >&2; exit 1; }
  read -rt 0.2 <> <(:) || true
done
eval "$(bin/isthmus env --data "$work/data")"
echo "E2B_API_URL=$E2B_API_URL"

echo "== docs/examples/hello.py"
"$work/venv/bin/python" docs/examples/hello.py
echo "== docs/examples/hello.mjs"
(cd "$work" && node hello.mjs)

echo "== stopping"
stop
trap - EXIT
echo "done: two programs written for E2B ran on this machine"
