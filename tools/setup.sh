#!/bin/sh
# Make .venv in the project's root and install the project into it: setup.sh "." or setup.sh ".[dev]".
set -eu
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Holdfast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2
    exit 1
}
if [ ! -x .venv/bin/python ]; then
    # Debian keeps venv in a package of its own.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        [ "$(id -u)" = 0 ] || { echo "please run: sudo apt-get install python3-venv" >&2; exit 1; }
        apt-get update -qq && apt-get install -qq -y python3-venv
    fi
    echo "making .venv"
    "$python" -m venv .venv
fi
echo "installing holdfast into .venv (a minute the first time)"
.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable "$1"
