#!/bin/sh
# Build the sdist and the wheel into dist/, check them, and try the wheel in a fresh environment with the core
# dependencies only, as somebody who installs it would.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf dist
"$python" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet build twine
"$work/build/bin/python" -m build --quiet --outdir dist .
"$work/build/bin/twine" check --strict dist/*
"$python" -m venv "$work/core"
"$work/core/bin/python" -m pip install --quiet --constraint constraints.txt dist/*.whl
cd "$work"
core/bin/holdfast --version
core/bin/python -W error -c "
import holdfast as hf
table = hf.open({'x': list(range(1000))}, hf.Schema(x=hf.Integer(0, 999)))
session = table.session(epsilon=1.0, delta=1e-6, queries=10)
print(session.plan)
print(session.fraction('x < 500'))
"
core/bin/python -m holdfast doctor
core/bin/holdfast demo --rows 100000 >/dev/null
if core/bin/holdfast serve --demo 2>"$work/said"; then
    echo "serve started without its extra" >&2
    exit 1
fi
grep -q "holdfast\[server\]" "$work/said"
echo "the wheel works with core dependencies only"
