"""Killed at any step, a save leaves the complete store, the old one, or none that opens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from holdfast.data import save
from holdfast.data.save import save_store
from holdfast.data.store import StoreSource
from holdfast.errors import StoreError

SCRIPT = """
import os, sys, types
from pathlib import Path
import numpy as np
from data.test_save import flawed_save, source_of
from holdfast.data import frame, save
from holdfast.data.save import save_store

frame.BLOCK_ROWS = 100
work, flaw, overwrite = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "overwrite"
STEPS = ("mkdir", "open", "write", "fsync", "rename", "close")


class Deadly(types.ModuleType):
    # Stands in for `os` inside save.py: dies before, in the middle of, or after the k-th step.
    def __init__(self, moment):
        super().__init__("os")
        self.moment, self.count = moment, 0

    def __getattr__(self, name):
        real = getattr(os, name)
        if name not in STEPS:
            return real

        def step(*arguments):
            self.count += 1
            if self.count == self.moment:
                os._exit(9)
            if name == "write" and self.count + 1 == self.moment:
                real(arguments[0], arguments[1][: len(arguments[1]) // 2])
                os._exit(9)
            return real(*arguments)

        return step


moment = 0
while True:
    moment += 1
    folder = work / f"{moment:03d}"
    folder.mkdir()
    if overwrite:
        save_store(source_of(1), folder / "p.hf")
    child = os.fork()
    if child == 0:
        save.os = Deadly(moment)
        (flawed_save if flaw == "flawed" else save_store)(source_of(2), folder / "p.hf", overwrite=overwrite)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        break
print(moment)
"""


def source_of(seed: int):  # type: ignore[no-untyped-def]
    from holdfast.data.frame import FrameSource
    from holdfast.query.schema import Integer, Real, Schema

    random = np.random.default_rng(seed)
    schema = Schema(a=Integer(0, 9), b=Real(0, 1))
    codes = {"a": random.integers(0, 10, 250).astype(np.uint8), "b": random.random(250)}
    return FrameSource(schema, codes, fingerprint=f"{seed:032x}")


def flawed_save(source, path, *, overwrite):  # type: ignore[no-untyped-def]
    """A broken twin: the manifest first, files of full length, then the rows."""
    from holdfast.data.manifest import MANIFEST_NAME, Manifest, column_file

    path.mkdir(exist_ok=True)
    manifest = Manifest(source.schema, source.rows, 1, source.fingerprint, ("0" * 64,) * 2)
    (path / MANIFEST_NAME).write_bytes(manifest.to_bytes())
    for index, name in enumerate(source.schema):
        (path / column_file(index)).write_bytes(bytes(source.rows * source.schema[name].dtype.itemsize))
    for index, name in enumerate(source.schema):
        descriptor = save.os.open(path / column_file(index), os.O_WRONLY)
        for block in source.scan([name]):
            save.os.write(descriptor, block[name].tobytes())
        save.os.close(descriptor)


def killed_everywhere(work: Path, flaw: str, overwrite: str) -> int:
    """The number of moments at which a save was killed; what each left behind lies in a folder of its own."""
    tests = Path(__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(work), flaw, overwrite],
        env={**os.environ, "PYTHONPATH": f"{tests}:{tests.parent / 'src'}"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


def left_behind(folder: Path) -> list[str]:
    """The stores that open, hidden ones too, each as the number of its source or "broken"."""
    found = []
    for path in sorted(folder.iterdir()):
        try:
            store = StoreSource(path)
        except StoreError:
            continue
        seed = int(store.fingerprint, 16)
        try:
            store.verify()
            same = all(
                np.array_equal(left[name], right[name])
                for left, right in zip(store.scan(["a", "b"]), source_of(seed).scan(["a", "b"]), strict=True)
                for name in ("a", "b")
            )
        except StoreError:
            same = False
        found.append(str(seed) if same else "broken")
    return found


@pytest.mark.parametrize("overwrite", ["fresh", "overwrite"])
def test_no_moment_leaves_half_a_store(tmp_path: Path, overwrite: str) -> None:
    moments = killed_everywhere(tmp_path, "sound", overwrite)
    assert moments > 15
    for moment in range(1, moments + 1):
        folder = tmp_path / f"{moment:03d}"
        assert "broken" not in left_behind(folder)
        if overwrite == "overwrite":
            assert "1" in left_behind(folder) or "2" in left_behind(folder)
    assert left_behind(tmp_path / f"{moments:03d}") == ["2"]
    assert [path.name for path in (tmp_path / f"{moments:03d}").iterdir()] == ["p.hf"]


def test_the_test_catches_a_manifest_written_first(tmp_path: Path) -> None:
    moments = killed_everywhere(tmp_path, "flawed", "fresh")
    assert any("broken" in left_behind(tmp_path / f"{moment:03d}") for moment in range(1, moments))


def test_after_a_crash_the_same_path_can_be_saved(tmp_path: Path) -> None:
    moments = killed_everywhere(tmp_path, "sound", "fresh")
    for moment in (1, moments // 2, moments - 1):
        path = tmp_path / f"{moment:03d}" / "p.hf"
        assert save_store(source_of(3), path, overwrite=True).fingerprint == f"{3:032x}"
