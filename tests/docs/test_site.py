"""The book is built without a warning, from what is here; notebooks run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium, visit
from pages import ROOT

sys.path.insert(0, str(ROOT))

from tools import notebook, print_pdf, site_pages


def build(source: Path, target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)],
        cwd=source, capture_output=True, text=True, timeout=600,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole book, with every notebook run."""
    target = tmp_path_factory.mktemp("book") / "site"
    built = build(ROOT, target)
    assert built.returncode == 0 and "WARNING" not in built.stderr, built.stderr
    return target


def test_every_page_and_every_notebook_is_in_it(site: Path) -> None:
    written = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    made = {Path(f"notebooks/{script.stem}.html") for script in notebook.scripts()}
    nav = (ROOT / "mkdocs.yml").read_text()
    missing = [page for page in written if str(page.with_suffix(".md")) not in nav]
    assert missing == [], "name them in mkdocs.yml"
    assert [page for page in written | made if not (site / page).is_file()] == []
    for script in notebook.scripts():
        assert (site / "notebooks" / f"{script.stem}-0.png").stat().st_size > 5000
        assert (site / "notebooks" / f"{script.stem}.ipynb").is_file()


def test_the_reference_names_everything_public(site: Path) -> None:
    for page, rooms in site_pages.ROOMS.items():
        shown = (site / "reference" / f"{page}.html").read_text()
        for room in rooms:
            names = importlib.import_module(room).__all__
            assert [name for name in names if name not in shown] == [], room
    commands = (site / "reference" / "cli.html").read_text()
    assert all(f"holdfast {name}" in commands for name in ("ask", "ingest", "plan", "serve", "ledger verify"))
    for page in ("http", "page"):
        assert "/v1/datasets/{dataset}/ask" in (site / "reference" / f"{page}.html").read_text()
    assert "BudgetError" in (site / "reference" / "errors.html").read_text()


def test_names_of_pages_are_links(site: Path) -> None:
    first = (site / "index.html").read_text()
    assert 'href="theorems.html"' in first and "`docs/" not in first
    assert not re.search(r"\]\([\w/]+\.md\)", first), "a link inside code"


def test_the_sliders_move_and_the_paper_is_printed(site: Path, tmp_path: Path) -> None:
    with chromium() as browser, visit(browser, "") as visitor:
        visitor.page.goto((site / "widths.html").as_uri())
        before = visitor.page.inner_text("#bars")
        visitor.page.fill("#rows", "4")
        after = visitor.page.inner_text("#bars")
        assert "leave-out" in before and before != after
        assert visitor.complaints == []
        print_pdf.print_page(browser, site / "leave-out.html", tmp_path / "paper.pdf")
    assert (tmp_path / "paper.pdf").read_bytes().startswith(b"%PDF")


def test_a_link_to_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Here\n\n[there](there.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: small\n")
    assert build(tmp_path, tmp_path / "site").returncode != 0


def test_a_notebook_that_fails_is_noticed(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    script.write_text("# %% [markdown]\n# # Wrong\n\n# %%\nassert 1 == 2\n")
    with pytest.raises(AssertionError):
        notebook.run(script)
