"""From a backup into an empty place: verified, asked, and nothing charged twice."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from fastapi.testclient import TestClient
from gateway import people
from services import _postgres_program

from holdfast.cli import main
from holdfast.service import backup as backup_module
from holdfast.service import create_app
from service.process import database_of
from service.site import site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}


@pytest.fixture(autouse=True)
def _programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """pg_dump and pg_restore of the server's own version."""
    monkeypatch.setattr(
        backup_module,
        "_run",
        lambda program, *how: subprocess.run([_postgres_program(program), *how], check=True),
    )


def holdfast(*command: object) -> Any:
    return CliRunner().invoke(main, [str(part) for part in command])


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_gateway_goes_on_in_another_place(kind: str, tmp_path: Path) -> None:
    first, second = (database_of(kind).get("HOLDFAST_DATABASE") for _ in range(2))
    flags = [[] if url is None else ["--database", url] for url in (first, second)]
    with site({"people": people(1_000)}, database=first) as here:
        settings, analyst = here.started.settings, here.started.analyst
        told = here.ask(QUESTION, key="k").text
        assert holdfast("backup", settings.folder, tmp_path / "kept", *flags[0]).exit_code == 0
        spent = here.totals()
        moved = replace(settings, folder=tmp_path / "new", anchors=tmp_path / "anchors", database=second)
        here.started.gateway.close()
        shutil.rmtree(settings.folder / "data")  # the machine is gone
    result = holdfast("restore", tmp_path / "kept", tmp_path / "new", *flags[1])
    assert result.exit_code == 0, result.output
    # Tables were registered by their place, which is the same on the new machine.
    shutil.copytree(tmp_path / "new" / "data", settings.folder / "data")
    app = create_app(replace(moved, data=(settings.folder / "data",)))
    app.state.gateway.check()
    with TestClient(app) as client:
        bearer = {"Authorization": f"Bearer {analyst}"}

        def ask(question: dict[str, Any], key: str) -> Any:
            sent = bearer | {"Idempotency-Key": key}
            return client.post("/v1/datasets/people/ask", json=question, headers=sent)

        assert ask(QUESTION, "k").text == told, "the same reply"
        assert ask(QUESTION, "other").json()["answers"] == json.loads(told)["answers"]
        ledger = app.state.gateway.tables.ledger("people")
        assert ledger.totals() == spent, "nothing is charged twice"
        assert ask(QUESTION | {"where": "age > 1"}, "new").status_code == 200
        assert ledger.totals().entries == spent.entries + 1
    shutil.rmtree(settings.folder)


def test_a_backup_that_is_not_whole_or_of_another_version_is_refused(tmp_path: Path) -> None:
    with site({"people": people(1_000)}) as here:
        folder = here.started.settings.folder
        assert holdfast("backup", folder, tmp_path / "kept").exit_code == 0
        assert "empty folder" in holdfast("backup", folder, tmp_path / "kept").output
        names = [path.name for path in (tmp_path / "kept").rglob("*")]
        assert not [name for name in names if name.endswith((".anchor", "-wal", "-shm"))]
    manifest = tmp_path / "kept" / backup_module.MANIFEST
    whole = manifest.read_text()

    def refused(words: str) -> None:
        result = holdfast("restore", tmp_path / "kept", tmp_path / "new")
        assert result.exit_code == 1 and words in result.output, result.output
        assert not (tmp_path / "new").exists(), "nothing was written"

    manifest.write_text(whole.replace('"ledger": 1', '"ledger": 2'))
    refused("formats")
    manifest.write_text("{")
    refused("expected a backup")
    manifest.write_text(whole)
    assert (
        "--database"
        in holdfast("restore", tmp_path / "kept", tmp_path / "new", "--database", "postgresql://x").output
    )
    with (tmp_path / "kept" / "folder" / "gateway.sqlite").open("ab") as file:
        file.write(b"x")
    refused("missing or was changed")


def test_an_older_backup_beside_its_anchors_is_refused(tmp_path: Path) -> None:
    """The anchors stayed: what was charged since the backup is not forgotten."""
    with site({"people": people(1_000)}) as here:
        settings = here.started.settings
        assert here.ask(QUESTION).status_code == 200
        assert holdfast("backup", settings.folder, tmp_path / "kept").exit_code == 0
        assert here.ask(QUESTION | {"where": "age > 1"}).status_code == 200
        here.started.gateway.close()
        shutil.move(settings.folder / "anchors", tmp_path / "anchors")
        shutil.rmtree(settings.folder)
        assert holdfast("restore", tmp_path / "kept", settings.folder).exit_code == 0
        app = create_app(replace(settings, anchors=tmp_path / "anchors"))
        with pytest.raises(Exception, match="older copy"):
            app.state.gateway.check()
        app.state.gateway.close()
