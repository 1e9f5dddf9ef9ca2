"""Print a page of the book as a PDF with the browser that the tests use: `python tools/print_pdf.py PAGE PDF`."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright


def print_page(browser: Browser, page: Path, target: Path) -> None:
    """The page on A4, without the book's navigation."""
    sheet = browser.new_page()
    sheet.goto(page.resolve().as_uri())
    sheet.pdf(path=target, format="A4", margin=dict.fromkeys(("top", "bottom", "left", "right"), "18mm"))
    sheet.close()


if __name__ == "__main__":
    with sync_playwright() as engine:
        started = engine.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        print_page(started, Path(sys.argv[1]), Path(sys.argv[2]))
    print(sys.argv[2])
