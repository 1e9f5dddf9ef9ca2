"""Real servers for the tests, started when first asked for and stopped when the process ends.

PostgreSQL comes from the Debian package `postgresql` (any version from 14), Spark from `pyspark` on a Java
runtime (the Debian package `default-jre-headless`). HAProxy (`haproxy`) is in service/proxy.py.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import psycopg


class PostgresServer:
    """A server of our own on a unix socket, as the user `postgres` when we are root, which it refuses."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="holdfast-pg-"))
        self._data = self._folder / "data"
        self._account: dict[str, Any] = {}
        if os.getuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self._folder, account.pw_uid, account.pw_gid)
            self._account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.url = f"postgresql://postgres@/postgres?host={self._folder}"
        atexit.register(self._remove)
        self._watch()
        self.start()

    def start(self) -> None:
        settings = "-c listen_addresses='' -c fsync=off -c full_page_writes=off -c shared_buffers=256MB"
        self._run(
            *("pg_ctl", "-D", self._data, "-w", "-l", self._folder / "log"),
            *("-o", f"-k {self._folder} {settings} -c autovacuum=off -c max_wal_size=4GB", "start"),
        )

    def stop(self) -> None:
        self._run("pg_ctl", "-D", self._data, "-w", "-m", "immediate", "stop")

    def freeze(self) -> None:
        """Stop every process of the server where it is: connections stay, and nothing is answered."""
        for process in self._processes():
            os.kill(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for process in self._processes():
            os.kill(process, signal.SIGCONT)

    def _processes(self) -> list[int]:
        """The postmaster first, so that it starts no other meanwhile."""
        parent = int((self._data / "postmaster.pid").read_text().split()[0])
        threads = Path(f"/proc/{parent}/task/{parent}/children")
        return [parent, *map(int, threads.read_text().split())]

    def execute(self, statement: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        """Run one statement, or one for each of the rows of parameters, and commit."""
        with psycopg.connect(self.url) as connection, connection.cursor() as cursor:
            if rows is None:
                cursor.execute(statement)  # type: ignore[arg-type]
            else:
                cursor.executemany(statement, rows)  # type: ignore[arg-type]

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [_postgres_program(program), *map(str, arguments)],
            check=True,
            cwd="/",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **self._account,
        )

    def _watch(self) -> None:
        """Stop this server also when we are killed: the pipe to the watcher then closes by itself."""
        script = 'read _; "$1" -D "$2/data" -m immediate stop; rm -rf "$2"'
        self._watcher = subprocess.Popen(
            ["sh", "-c", script, "watcher", _postgres_program("pg_ctl"), str(self._folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
            **self._account,
        )

    def _remove(self) -> None:
        with contextlib.suppress(subprocess.CalledProcessError):  # a test may have stopped it
            self.stop()
        self._watcher.communicate()  # closes the pipe and waits until it has tidied up
        shutil.rmtree(self._folder, ignore_errors=True)


def _postgres_program(name: str) -> str:
    """A program of the newest PostgreSQL of the system; Debian keeps them out of PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -int(path.parts[-2]))
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    found = shutil.which(name)
    if found is None:
        raise RuntimeError(f"expected PostgreSQL's {name}, got none; run apt-get install postgresql")
    return found


@functools.cache
def postgres() -> PostgresServer:
    """The one PostgreSQL server of this process."""
    return PostgresServer()


@functools.cache
def spark(*, compiled: bool = False) -> Any:
    """The one SparkSession of this process: two threads, little memory, no web page, no log.

    Java's quick compiler starts sooner; `compiled` asks for the thorough one, which is faster in the end.
    """
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise RuntimeError("expected Java for Spark, got none; run apt-get install default-jre-headless")
    from pyspark.sql import SparkSession

    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    folder = tempfile.mkdtemp(prefix="holdfast-spark-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.memory": "2g" if compiled else "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.local.dir": folder,
        "spark.sql.warehouse.dir": folder,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "America/New_York",
        "spark.driver.extraJavaOptions": f"-XX:+UseSerialGC{'' if compiled else ' -XX:TieredStopAtLevel=1'}",
    }
    builder = SparkSession.builder.master("local[2]").appName("holdfast tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = builder.getOrCreate()
    atexit.register(session.stop)
    return session
