"""The book is built without a warning, from what is here; notebooks run, links lead somewhere, nothing is left out."""

from __future__ import annotations

import importlib
import math
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium, visit
from pages import ROOT
from PIL import Image
from PIL.PngImagePlugin import PngImageFile
from playwright.sync_api import Browser

sys.path.insert(0, str(ROOT))

import holdfast as hf
from evidence import widths
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
    types = (site / "reference" / "schema.html").read_text()
    declared = [
        name
        for name in hf.__all__
        if isinstance(getattr(hf, name), type) and hasattr(getattr(hf, name), "encode_array")
    ]
    assert len(declared) > 7 and [name for name in declared if f'.{name}" class="doc' not in types] == []
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


def figures(browser: Browser, page: Path) -> dict[str, tuple[str, str, float]]:
    """Each figure of the page: its picture before and after the slider is at its end, and the number told there."""
    with visit(browser, "") as visitor:
        visitor.page.goto(page.as_uri())
        found = {}
        for figure in visitor.page.query_selector_all(".figure"):
            slider, picture = figure.query_selector("input"), figure.query_selector("svg")
            assert slider is not None and picture is not None
            before = picture.inner_html()
            slider.fill(figure.get_attribute("data-max") or "")
            number = float(figure.query_selector("output").inner_text().split()[-1])  # type: ignore[union-attr]
            found[figure.get_attribute("data-figure") or ""] = before, picture.inner_html(), number
        assert visitor.complaints == []
    return found


TOLD = {
    "noise": math.exp(3),
    "budget": 400 * 1e-4 + 2 * math.sqrt(400 * 1e-4 * math.log(1e6)),
    "leaveout": math.sqrt(1e6 / (16 * 100 * 9999) + math.log(40) / (2 * 9900)),
    "votes": math.sqrt(math.log(40) / 40_000) / 0.8,
    "attack": math.sqrt(400 / 500) / math.pi,
}
"""What each figure of docs/why.md tells at the end of its slider, by the formula beside it."""


def misled(found: dict[str, tuple[str, str, float]]) -> list[str]:
    """The figures that stand still or tell something else; the attack is simulated, and near its formula."""
    return [
        name
        for name, (before, after, number) in found.items()
        if before == after or abs(number - TOLD[name]) > (0.05 if name == "attack" else 1e-3 * TOLD[name])
    ]


def test_every_picture_of_the_argument_moves_and_tells_its_formula(site: Path, tmp_path: Path) -> None:
    with chromium() as browser:
        found = figures(browser, site / "why.html")
        assert found.keys() == TOLD.keys() and misled(found) == []
        # The broken twin: without the factor 2 of the conversion, and a slider that moves nothing.
        shutil.copytree(site, tmp_path / "site")
        script = tmp_path / "site" / "sliders.js"
        broken = script.read_text().replace("r + 2 * Math", "r + Math").replace("attack(k, 0)]", "0]")
        script.write_text(broken)
        assert misled(figures(browser, tmp_path / "site" / "why.html")) == ["budget", "attack"]


def swallowed(markdown: str) -> bool:
    """Whether the words after an index `<j` are lost, because a browser takes them for a tag."""
    from markdown import markdown as rendered

    return "be the information" not in re.sub(r"<[^>]+>", "", rendered(markdown))


def test_formulas_have_indices_and_lose_no_words(site: Path) -> None:
    shown = (site / "leave-out.html").read_text()
    assert (
        "Σ<sub>i&lt;j</sub> 1/σ<sub>i</sub>² be the information" in shown
        and "s<sub>J<sup>c</sup></sub>" in shown
    )
    line = "Let I = Σ_{i<j} 1/σ_i² be the information, and z > 0."
    assert swallowed(line) and not swallowed(site_pages.typeset(line))
    assert (
        site_pages.typeset("`a_i < b` and a_i^{2} in 10^5")
        == "`a_i < b` and a<sub>i</sub><sup>2</sup> in 10<sup>5</sup>"
    )
    for page in site_pages.FORMULAS:
        text = re.sub(
            r"<(pre|code|script).*?</\1>", "", (site / page).with_suffix(".html").read_text(), flags=re.DOTALL
        )
        assert not re.search(r"[σΣΠ]_", text), page


def test_a_chapter_has_its_theorem_and_something_to_try(site: Path) -> None:
    for script in notebook.scripts():
        text = script.read_text()
        assert text.index("**Theorem**") < text.index("plt.") if "plt." in text else "**Theorem**" in text, (
            script
        )
        assert "**Try it.**" in text and "assert " in text, script
        assert f"notebooks/{script.stem}.md" in (ROOT / "mkdocs.yml").read_text(), script


def not_at_work(argument: str) -> list[str | int]:
    """Chapters that the argument does not name, theorems without a chapter, numbers that are no theorem."""
    shown = site_pages.chapters()
    text = (ROOT / "docs" / "theorems.md").read_text()
    there = {int(n) for n in re.findall(r"^### (?:Theorem|Lemma) (\d+)", text, re.M)}
    unnamed = [
        script.stem for script in notebook.scripts() if f"(notebooks/{script.stem}.md)" not in argument
    ]
    return [*unnamed, *sorted(there - shown.keys()), *sorted(shown.keys() - there)]


def test_every_theorem_is_seen_at_work(site: Path) -> None:
    argument = (ROOT / "docs" / "why.md").read_text()
    assert not_at_work(argument) == []
    assert not_at_work(argument.replace("(notebooks/quantiles.md)", "")) == ["quantiles"]
    theorem = (site / "theorems.html").read_text().partition('id="theorem-33')[2]
    assert (
        theorem.index("Seen at work") < theorem.index("notebooks/quantiles.html") < theorem.index("qualify")
    )


def test_the_picture_of_the_widths_is_of_the_widths_that_are_recorded() -> None:
    picture = Image.open(ROOT / "docs" / "leave-out-widths.png")
    assert isinstance(picture, PngImageFile)
    assert picture.text["Description"] == widths.drawn(), "python evidence/widths.py picture"


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
