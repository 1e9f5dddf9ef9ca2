#!/bin/sh
# Make .venv in the project's root and install the project into it: setup.sh "." or setup.sh ".[dev]".
# For ".[dev]" also the Debian packages that the tests start for real: a PostgreSQL server,
# a Java runtime and a browser.
set -eu
python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Holdfast needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2
    exit 1
}

debian() {
    if [ "$(id -u)" != 0 ]; then
        echo "please run: sudo apt-get install $*" >&2
        exit 1
    fi
    echo "installing Debian packages: $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

if [ ! -x .venv/bin/python ]; then
    # Debian keeps venv in a package of its own.
    "$python" -c 'import ensurepip, venv' 2>/dev/null || debian python3-venv
    echo "making .venv"
    "$python" -m venv .venv
fi
echo "installing holdfast into .venv (a minute or two the first time)"
.venv/bin/python -m pip install --quiet --constraint constraints.txt --editable "$1"

if [ "$1" = ".[dev]" ]; then
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || debian postgresql
    command -v java >/dev/null || debian default-jre-headless
    command -v haproxy >/dev/null || ls /usr/sbin/haproxy >/dev/null 2>&1 || debian haproxy
    # Of Prometheus its reader of rules alone: the package would start a server.
    command -v promtool >/dev/null || [ -x .venv/bin/promtool ] || (
        cd .venv
        apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq; apt-get download -qq prometheus; }
        dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 -C bin ./usr/bin/promtool
        rm prometheus_*.deb
    )
    command -v chromium >/dev/null || debian chromium fonts-dejavu-core
fi
