"""`holdfast backup` and `holdfast restore`: a gateway's folder, and its PostgreSQL database, as one folder of files."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from holdfast import __version__
from holdfast.errors import InputError, LedgerError
from holdfast.formats import FORMATS

MANIFEST, DUMP = "holdfast-backup.json", "database.dump"
_LEFT_OUT = ("anchors", "metrics")
"""Anchors must not come back with a backup: they tell that it is one. Metrics are counted anew."""
_BESIDE = ("-wal", "-shm", "-journal", "-turn")


def write_backup(folder: Path, target: Path, database: str | None = None) -> int:
    """Copy a gateway's folder, and its database, into the empty folder `target`; the number of files.

    Guarantee: each SQLite file is copied as it stood at one moment, also while a gateway runs. Ledgers are copied after
    the replies: they may know more, and never less. Anchors are left out.
    """
    _refuse_full(target)
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    first = ("gateway.sqlite", "replies.sqlite")
    for path in sorted(_files(folder), key=lambda path: path.name not in first):
        place = target / "folder" / path.relative_to(folder)
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _copy(path, place)
    if database is not None:
        _run("pg_dump", "--format=custom", f"--file={target / DUMP}", database)
    files = {
        path.relative_to(target).as_posix(): _digest(path) for path in target.rglob("*") if path.is_file()
    }
    manifest = {
        "holdfast": __version__, "formats": FORMATS, "files": files,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }  # fmt: skip
    (target / MANIFEST).write_text(json.dumps(manifest, indent=1))
    return len(files)


def read_backup(source: Path, folder: Path, database: str | None = None) -> int:
    """Put a backup into an empty folder, and an empty database; the number of files.

    Nothing is written unless the backup is whole and of the formats of this release. Ledgers and the catalog are looked
    at by `holdfast serve`, which refuses what is older than its anchor.
    """
    files = _checked(source)
    if (DUMP in files) != (database is not None):
        raise InputError(
            "expected --database for a backup with a database, and none for one without, got the other; look at "
            f"{MANIFEST}"
        )
    _refuse_full(folder)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in files:
        if name != DUMP:
            place = folder / Path(name).relative_to("folder")
            place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _copy(source / name, place)
    if database is not None:
        _run("pg_restore", "--exit-on-error", f"--dbname={database}", str(source / DUMP))
    return len(files)


def _checked(source: Path) -> dict[str, str]:
    """The files of a backup, with their digests; LedgerError if one is missing, changed, or of another version."""
    try:
        manifest = json.loads((source / MANIFEST).read_text())
        files, formats = dict(manifest["files"]), manifest["formats"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"expected a backup in {source}, got none; give the folder of {MANIFEST}") from None
    if formats != FORMATS:
        raise LedgerError(
            f"expected a backup of the formats of Holdfast {__version__}, got one of {manifest.get('holdfast')}; "
            "restore it with that release"
        )
    for name, digest in files.items():
        path = source / name
        if ".." in Path(name).parts or not path.is_file() or _digest(path) != digest:
            raise LedgerError(f"{name} of this backup is missing or was changed; take another backup")
    return files


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        beside = path.name.endswith(tuple(f".sqlite{end}" for end in _BESIDE))
        if path.is_file() and not path.is_symlink() and inside.parts[0] not in _LEFT_OUT and not beside:
            yield path


def _copy(path: Path, place: Path) -> None:
    from holdfast.ledger.sqlite_readers import copy_database

    if path.suffix == ".sqlite":
        copy_database(path, place)
    else:
        shutil.copyfile(path, place)
    place.chmod(0o600)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _refuse_full(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"expected an empty folder, got {folder} with something in it; choose another")


def _run(program: str, *arguments: str) -> None:
    """A program of PostgreSQL; its words may hold the password's place, and are not told."""
    try:
        subprocess.run([program, *arguments], check=True, capture_output=True, env=os.environ)
    except OSError:
        raise InputError(f"expected PostgreSQL's {program}, got none; install its client programs") from None
    except subprocess.CalledProcessError as error:
        raise LedgerError(f"{program} ended with {error.returncode}; look at the database") from None


_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command()
@click.argument("folder", type=click.Path(exists=True, path_type=Path, file_okay=False))
@click.argument("target", type=_FOLDER)
@click.option("--database", envvar="HOLDFAST_DATABASE", help="postgresql://…, if the gateway has one")
def backup(folder: Path, target: Path, database: str | None) -> None:
    """Copy a gateway's FOLDER (and database) into the empty folder TARGET, also while it runs; without its anchors."""
    click.echo(f"{write_backup(folder, target, database):,} files in {target}")


@click.command()
@click.argument("source", type=click.Path(exists=True, path_type=Path, file_okay=False))
@click.argument("folder", type=_FOLDER)
@click.option("--database", envvar="HOLDFAST_DATABASE", help="an empty database at postgresql://…")
def restore(source: Path, folder: Path, database: str | None) -> None:
    """Put the backup SOURCE into the empty FOLDER (and an empty database); `holdfast serve` then looks at it."""
    click.echo(
        f"{read_backup(source, folder, database):,} files in {folder}; start the gateway to verify them"
    )
