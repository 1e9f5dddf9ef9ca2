"""Every `holdfast …` line of a page names a command that is there, with options that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from pages import ROOT

from holdfast.cli import main

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "docs").rglob("*.py"))]
FENCE = re.compile(r"^```(?:sh|text)?\n(.*?)^```", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`(holdfast [^`\n]+)`")


def lines(text: str) -> Iterator[str]:
    """The commands of a page: lines of its blocks that are not Python, and what stands in backquotes."""
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield from (part for part in re.split(r"&&|\||;", line) if part.strip().startswith("holdfast "))
    yield from SPAN.findall(text)


def wrong(line: str) -> str:
    """What is wrong with a command; nothing if it could be run."""
    words = shlex.split(re.sub(r" (>|2>|<|#).*", "", line.strip()))[1:]
    command: click.Command = main
    while isinstance(command, click.Group):
        if not words or words[0].startswith(("-", "…")) or not words[0].isascii():
            break
        if words[0] not in command.commands:
            return "" if command.invoke_without_command else f"{line}: no command {words[0]}"
        command = command.commands[words.pop(0)]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {
        "--help"
    }
    if command is main:
        known.add("--version")
    given = [word.split("=")[0] for word in words if word.startswith("--")]
    unknown = [name for name in given if name not in known]
    return f"{line}: no option {', '.join(unknown)}" if unknown else ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_commands_of_a_page_are_there(page: Path) -> None:
    assert [fault for line in lines(page.read_text()) if (fault := wrong(line))] == []


@pytest.mark.parametrize(
    "line",
    [
        "holdfast holdout serve --state folder",
        "holdfast holdout begin labels.csv",
        "holdfast askk x",
        "holdfast --versio",
    ],
)
def test_a_command_that_is_not_there_is_noticed(line: str) -> None:
    assert wrong(next(lines(f"```sh\n{line}\n```\n")))
    assert wrong(next(lines(f"as `{line}` does")))
