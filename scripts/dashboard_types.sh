#!/usr/bin/env bash
# Checks grafana/json against Grafana's own types, units, transformations and matchers (npm: @grafana/schema,
# @grafana/data). Needs Node.js 20 and npm; nothing is left in the repository. Not a part of `make test`: run it
# when a dashboard has got a new kind of panel or option.
#   scripts/dashboard_types.sh [FOLDER FOR THE PACKAGES]
set -euo pipefail
version=13.2.3
root=$(cd "$(dirname "$0")/.." && pwd)
work=${1:-$(mktemp -d)}
mkdir -p "$work"
[ -n "${1:-}" ] || trap 'rm -rf "$work"' EXIT
cd "$work"
[ -f package.json ] || echo '{"private": true}' >package.json
# --legacy-peer-deps: the peers are what a browser needs.
[ -d node_modules/@grafana/data ] ||
    npm install --silent --no-audit --no-fund --legacy-peer-deps \
        "@grafana/schema@$version" "@grafana/data@$version" typescript@5 react@18 react-dom@18 jsdom@24
cp "$root/scripts/dashboard_types.cjs" check.cjs
node check.cjs "$root"/grafana/json/*.json
./node_modules/.bin/tsc -p tsconfig.json
echo "The dashboards are what Grafana $version takes."
