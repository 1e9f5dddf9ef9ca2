"""A table comes in by upload or by path, with suggested columns to edit; by owners, and nobody else."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from service.site import Site, site, write_csv
from service.test_page import Window


@pytest.fixture(scope="module")
def here() -> Iterator[Site]:
    with site() as started:
        yield started


def _rows(here: Site, name: str) -> Path:
    path = here.started.settings.roots[0] / name
    write_csv(path, {"age": [*range(20, 60)] * 5, "sex": ["f", "m"] * 100})
    return path


def _columns(text: str) -> str:
    (found,) = re.findall(r'<textarea id="schema".*?>(.*?)</textarea>', text, re.S)
    return unescape(found)


def test_columns_are_suggested_edited_and_registered(here: Site) -> None:
    _rows(here, "first.csv")
    window = Window(here.client, here.started.owner)
    own = window.own("/register")
    shown = window.send("/register/suggest", **own, path="first.csv", id="first")
    assert shown.status_code == 200 and "read off the rows" in shown.text
    assert 'value="first"' in shown.text, "what was typed stays"
    columns = _columns(shown.text)
    assert '[columns."age"]' in columns and '"m"' in columns
    edited = columns.replace("60", "120")
    reply = window.send(
        "/register", **own, id="first", path="first.csv", schema=edited, epsilon="1", delta="1e-6"
    )
    assert reply.status_code == 303, reply.text
    assert "20 to 120" in window.see("/tables/first") or "120" in window.see("/tables/first")


def test_a_file_is_uploaded_once_and_for_the_gateway_alone(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    own, content = window.own("/register"), "age\n" + "\n".join(map(str, range(50)))
    shown = window.send("/register/upload", **own, files={"file": ("New.csv", content.encode())})
    assert shown.status_code == 200 and 'value="New.csv"' in shown.text and 'value="new"' in shown.text
    assert '[columns."age"]' in _columns(shown.text)
    kept = here.started.settings.roots[0] / "New.csv"
    assert kept.read_text() == content and stat.S_IMODE(kept.stat().st_mode) == 0o600
    again = window.send("/register/upload", **own, files={"file": ("New.csv", b"age\n1")})
    assert again.status_code == 409 and kept.read_text() == content


def test_a_file_that_cannot_be_read_takes_up_no_name(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    own = window.own("/register")
    refused = window.send("/register/upload", **own, files={"file": ("torn.csv", b"age,sex\n1\n2,f,3\n")})
    assert refused.status_code == 422 and "as many fields in each line" in refused.text
    mended = window.send("/register/upload", **own, files={"file": ("torn.csv", b"age,sex\n1,f\n2,m\n")})
    assert mended.status_code == 200 and '[columns."age"]' in _columns(mended.text)


def test_no_name_leads_out_of_the_folder(here: Site) -> None:
    window = Window(here.client, here.started.owner)
    own, before = window.own("/register"), sorted(here.started.settings.folder.rglob("*.csv"))
    for name in ("../evil.csv", "..csv", ".hidden.csv", "a/b.csv", "x.sqlite", "x.csv\x00", "é.csv"):
        reply = window.send("/register/upload", **own, files={"file": (name, b"age\n1")})
        assert reply.status_code == 422, name
    assert window.send("/register/upload", **own).status_code == 422
    assert sorted(here.started.settings.folder.rglob("*.csv")) == before
    for path in ("/etc/passwd", "nothing.csv", ""):
        assert window.send("/register/suggest", **own, path=path).status_code == 422


@pytest.mark.parametrize("role", ["analyst", "auditor"])
def test_nobody_but_an_owner_learns_columns_or_leaves_a_file(here: Site, role: str) -> None:
    _rows(here, f"{role}.csv")
    window = Window(here.client, getattr(here.started, role))
    own = window.own("/tables")
    asked = window.send("/register/suggest", **own, path=f"{role}.csv")
    sent = window.send("/register/upload", **own, files={"file": ("mine.csv", b"age\n1")})
    assert (asked.status_code, sent.status_code) == (403, 403)
    assert "columns.age" not in asked.text
    assert not (here.started.settings.roots[0] / "mine.csv").exists()
