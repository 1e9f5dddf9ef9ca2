"""A small file outside the database, which notices that an older copy was put back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from holdfast.errors import LedgerError
from holdfast.formats import FORMATS, check_format
from holdfast.ledger.entry import Totals

_RECORD = struct.Struct(">6s H q 32s q q q")
_MAGIC, _CHECKSUM = b"anchor", 32
_MOST = 4096
"""The most bytes of an anchor, of whatever version: all begin with the magic word and the version, in two bytes, and
end with the SHA-256 of what is before."""
_SYNC_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a ledger had come: the last place, the head there, and the table's totals."""

    place: int
    head: str
    totals: Totals


class NoAnchor(LedgerError):
    """The file is no anchor, or a damaged one."""


class Anchor:
    """Remembers the last mark of one ledger.

    Guarantee: it is advanced after each commit and before anything is returned, so a database without the
    anchor's place and head is a copy from the past, or one that went another way. Between `held` and its end
    nobody else reads or moves it: of two live copies on one machine only one can go on.
    A crash between commit and anchor leaves it behind, which is allowed: nothing was returned then. It is
    written in place; a kill loses nothing, a power cut at most its last second, which weakens the notice only.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._closed = weakref.finalize(self, os.close, self._file)
        self._synced = 0.0

    @classmethod
    def open(cls, path: Path, first: Mark) -> Anchor:
        """The anchor at a path; made with the mark `first` where there is none: trust on first use."""
        try:
            if not path.exists():
                _create(path, first)
            return cls(path)
        except OSError as error:
            raise LedgerError(
                f"the anchor {path} cannot be opened ({error.strerror}); give a folder that can be written, by "
                "HOLDFAST_ANCHORS or anchors="
            ) from None

    def latest(self) -> Mark:
        """The last mark, once nobody holds the anchor; for any thread.

        The file is opened for this alone: a lock belongs to an opening, so by the shared one a reader would let
        go of what a commit of another thread holds.
        """
        try:
            own = Anchor(self.path)
        except OSError as error:
            raise LedgerError(f"the anchor {self.path} cannot be opened: {error.strerror}; free it") from None
        with own.held():
            return own.read()

    def read(self) -> Mark:
        """The last mark. NoAnchor if the file is none, LedgerError if it is one of another version. Call it while
        `held`."""
        record = os.pread(self._file, _MOST, 0)
        body, checksum = record[:-_CHECKSUM], record[-_CHECKSUM:]
        whole = body.startswith(_MAGIC) and checksum == hashlib.sha256(body).digest()
        if whole:
            check_format("ledger's anchor", int.from_bytes(body[len(_MAGIC) :][:2], "big"), self.path)
        if not whole or len(body) != _RECORD.size:
            raise NoAnchor(
                f"expected an anchor in {self.path}, got something else; what was charged last is unknown. Make "
                "sure that the ledger is the current one, and acknowledge: docs/ledger.md"
            )
        _, _, place, head, entries, answers, units = _RECORD.unpack(body)
        return Mark(place, head.hex(), Totals(entries, answers, units))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nobody else holds the anchor meanwhile. One thread at a time: the lock is the opening's."""
        with flocked(self._file):
            yield

    def advance(self, mark: Mark) -> None:
        """Write a mark. Call it while `held`."""
        try:
            os.pwrite(self._file, _record(mark), 0)
            if time.monotonic() - self._synced > _SYNC_SECONDS:
                self._sync()
        except OSError as error:
            raise LedgerError(
                f"the anchor {self.path} cannot be written: {error.strerror}; free it"
            ) from None

    def renew(self, mark: Mark) -> None:
        """Write a mark over whatever is there, of whatever length. Call it while `held`."""
        os.ftruncate(self._file, _RECORD.size + _CHECKSUM)
        self.advance(mark)

    def close(self) -> None:
        """On disk, and let go."""
        if self._closed.alive:
            self._sync()
            self._closed()

    def _sync(self) -> None:
        os.fdatasync(self._file)
        self._synced = time.monotonic()


@contextlib.contextmanager
def flocked(file: int) -> Iterator[None]:
    """An exclusive lock on an open file, between processes and threads that opened it by themselves; the system
    lets go of it when a process dies."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)


def anchors_folder(given: Path | str | None, beside: Path | None) -> Path:
    """Where anchors are kept: the given folder, $HOLDFAST_ANCHORS, $XDG_STATE_HOME/holdfast/anchors or
    ~/.local/state/holdfast/anchors. Where the last two cannot be written, `beside` the ledger: better than
    none, but a backup that brings back both goes unnoticed."""
    named = given or os.environ.get("HOLDFAST_ANCHORS")
    if named:
        folder = Path(named)
        if not _writable(folder):
            raise LedgerError(f"the folder of anchors {folder} cannot be written; make it, or name another")
        return folder
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = Path(state) / "holdfast" / "anchors"
    if _writable(folder):
        return folder
    if beside is None:
        raise LedgerError(
            f"the folder of anchors {folder} cannot be written; name another by HOLDFAST_ANCHORS"
        )
    return beside


def _writable(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return os.access(folder, os.W_OK | os.X_OK)


def _create(path: Path, mark: Mark) -> None:
    """A new anchor, whole from its first moment; whoever comes second takes the first one's."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".anchor-") as file:
        file.write(_record(mark))
        file.flush()
        os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(file.name, path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _record(mark: Mark) -> bytes:
    totals, head = mark.totals, bytes.fromhex(mark.head)
    body = _RECORD.pack(
        _MAGIC, FORMATS["ledger's anchor"], mark.place, head, totals.entries, totals.answers, totals.units
    )
    return body + hashlib.sha256(body).digest()
