#!/usr/bin/env bash
# Usage: setup.sh VENV     Creates VENV and installs the package (editable) with its developer tools.
# PYTHON names the interpreter to use; else python3, else the newest of python3.13 ... python3.10 there is.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}
log=.cache/logs/setup.log
mkdir -p "$(dirname "$log")"

die() { echo "$*" >&2; exit 1; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; }

python=
for name in ${PYTHON:-python3 python3.13 python3.12 python3.11 python3.10}; do
    if command -v "$name" >/dev/null && fits "$name"; then python=$name; break; fi
done
if [ -z "$python" ]; then
    found=$({ ${PYTHON:-python3} --version; } 2>&1 | head -1) || true
    die "loadgen needs Python 3.10 to 3.13, and this machine has '$found': install one of those and say make setup PYTHON=python3.12"
fi

# An environment whose interpreter has gone, or is of another version, is made again.
if [ -e "$venv" ] && ! fits "$venv/bin/python"; then rm -rf "$venv"; fi
if [ ! -x "$venv/bin/pip" ]; then
    rm -rf "$venv"
    "$python" -m venv "$venv" >"$log" 2>&1 || {
        tail -5 "$log" >&2
        die "$python cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)"
    }
fi

printf 'Setting up %s with %s (half a minute or so) ' "$venv" "$("$python" --version)"
started=$SECONDS
# Not compiled beforehand: Python compiles what it imports, a small part of all this, when it first does so.
# One dot for every five packages met: enough to see that it moves.
"$venv/bin/pip" install --disable-pip-version-check --no-compile -e '.[dev]' 2>&1 | tee "$log" |
    awk '/^ *(Collecting|Obtaining|Installing|Building)/ && ++n % 5 == 1 {printf "."; fflush()}' || {
    echo
    grep -E 'ERROR|[Ee]rror:' "$log" | grep -v 'subprocess-exited\|metadata-generation' | tail -5 >&2 || tail -5 "$log" >&2
    die "pip could not install the package; its whole output is in $log"
}
echo " $((SECONDS - started)) s"
