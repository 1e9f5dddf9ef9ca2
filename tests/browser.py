"""A real browser for the tests: Debian's Chromium, headless, and what it complains about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Dialog, Page, sync_playwright

CHROMIUM = "/usr/bin/chromium"
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
]  # fmt: skip
PATIENCE = 60_000
"""Milliseconds to wait for what must come; a slow machine is no failure."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser for a whole file of tests."""
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


class Visit:
    """One visitor's page. `complaints` are errors of scripts, of the content policy, and on the console."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url, self.complaints = url, list[str]()
        self._context = browser.new_context(**options)
        self._context.set_default_timeout(PATIENCE)
        self.page: Page = self._context.new_page()
        self.page.on("console", lambda said: self._note(said.type, said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)

    def _note(self, kind: str, text: str) -> None:
        # A refusal (4xx) that the page shows in its place is a line on the console, and no complaint.
        if kind == "error" and "status of 4" not in text:
            self.complaints.append(text)

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append("a dialog")
        dialog.dismiss()

    def go(self, path: str) -> Page:
        """Open a page of the gateway."""
        self.page.goto(self.url + path)
        return self.page

    def enter(self, token: str) -> Page:
        """Sign in."""
        self.go("/sign-in").fill("#token", token)
        self.page.click("main button")
        self.page.wait_for_url("**/tables")
        return self.page

    def carry(self, cookie: str, value: str) -> None:
        """Go on with this cookie and no other."""
        self._context.clear_cookies()
        self._context.add_cookies([{"name": cookie, "value": value, "url": self.url}])

    def overflow(self) -> int:
        """How many pixels a page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    def close(self) -> None:
        """Go away."""
        self._context.close()


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """A visitor with a cookie jar of their own."""
    visitor = Visit(browser, url, **options)
    try:
        yield visitor
    finally:
        visitor.close()
