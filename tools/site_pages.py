"""Hooks of the book: what is not written by hand in docs/ is made here whenever it is built, so that it is never old.

The README is the first page; the reference is read off the code (docstrings, commands, routes, errors); notebooks are
run into pages; `docs/x.md` in a text is a link.
"""

from __future__ import annotations

import importlib
import json
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

from evidence import widths  # noqa: E402  (found through the path)
from tools import notebook  # noqa: E402

_PAGE = re.compile(r"(?<![\w/`\[])(?<!\]\()(`?)docs/([\w/-]+\.md)\1(?![\w\]])")
_NAMED = re.compile(r"(?:Theorem|Lemma)s? (\d+(?:(?:, | and )\d+)*)(?!\.?\d)")
_HEADING = re.compile(r"^### (?:Theorem|Lemma) (\d+)\b.*$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

_HTTP = """What a gateway answers. Send `Authorization: Bearer TOKEN` and JSON; docs/client.md has a client for Python
that does it for you. A refusal is `application/problem+json` with a `code` of the list below and, where it helps, a
`detail` that says what to do; nothing is charged for it. No refusal depends on a row of a table."""

FORMULAS = {"leave-out.md", "theorems.md", "why.md", "stream.md"}
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)|^<.*?>$", re.DOTALL | re.MULTILINE)
_GROUP = r"(\{(?:[^{}]|\{[^{}]*\})*\}|%s)"
_LOW = re.compile(
    r"(?<=[^\W_]|[′̃])_" + _GROUP % r"GDP|max|min|lo|hi|x{2,3}|u{2,3}|RR|signs|[^\W_](?![^\W²³])"
)
_HIGH = re.compile(r"\^" + _GROUP % r"\([^()]*\)|[−-]?[^\W_]+|[*°∞]")


def typeset(markdown: str) -> str:
    """Formulas as they are written in plain text, with indices and exponents; `<` before a letter begins no tag."""
    parts, at = [], 0
    for code in [*_CODE.finditer(markdown), None]:
        words = markdown[at : len(markdown) if code is None else code.start()]
        parts.append(_raised(re.sub(r"<(?=[A-Za-z/!?])", "&lt;", words)))
        if code is not None:
            parts.append(code[0])
            at = code.end()
    return "".join(parts)


def _raised(words: str) -> str:
    def made(tag: str, group: str) -> str:
        inner = group[1:-1] if group[0] in "{(" else group
        return f"<{tag}>{_raised(inner)}</{tag}>"

    words = _LOW.sub(lambda match: made("sub", match[1]), words)
    return _HIGH.sub(lambda match: made("sup", match[1]), words)


ROOMS = {
    "mechanisms": ["holdfast.mechanisms"],
    "privacy": ["holdfast.privacy"],
    "validity": ["holdfast.validity"],
    "holdout": ["holdfast.holdout"],
    "learn": ["holdfast.learn", "holdfast.synthesis"],
    "local": ["holdfast.local", "holdfast.stream"],
    "audit": ["holdfast.audit"],
}


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are made; a notebook's script is replaced by its page, its pictures and an .ipynb."""
    for name, content in (*made_pages(), *notebook_pages()):
        files.append(File.generated(config, name, content=content))
    for script in notebook.scripts():
        files.remove(files.src_uris[f"notebooks/{script.name}"])
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Names of pages become links with their titles; code is left alone."""
    here = posixpath.dirname(page.file.src_uri)
    markdown = markdown.replace("WIDTHS_OF_THE_EVIDENCE", json.dumps(widths.recorded()))

    def link(match: re.Match[str]) -> str:
        if files.get_file_from_path(match[2]) is None:
            return match[0]
        return f"[{_called(match[2])}]({posixpath.relpath(match[2], here or '.')})"

    if page.file.src_uri == "theorems.md":
        markdown = seen_at_work(markdown)
    if page.file.src_uri in FORMULAS or here == "notebooks":
        markdown = typeset(markdown)
    parts, at = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_PAGE.sub(link, markdown[at : fence.start()]), fence[0]]
        at = fence.end()
    return "".join([*parts, _PAGE.sub(link, markdown[at:])])


def _called(page: str) -> str:
    """The title of a page that is written by hand; of any other its name."""
    path = ROOT / "docs" / page
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") if path.is_file() else page


def chapters() -> dict[int, list[str]]:
    """For each theorem the notebooks that name it."""
    found: dict[int, list[str]] = {}
    for script in notebook.scripts():
        for numbers in _NAMED.findall(script.read_text(encoding="utf-8")):
            for number in map(int, re.findall(r"\d+", numbers)):
                found.setdefault(number, []).append(script.stem)
    return {number: list(dict.fromkeys(scripts)) for number, scripts in found.items()}


def seen_at_work(markdown: str) -> str:
    """Below the heading of a theorem, where a notebook shows it."""
    shown = chapters()

    def under(match: re.Match[str]) -> str:
        links = [
            f"[{notebook.title(notebook.FOLDER / f'{name}.py')}](notebooks/{name}.md)"
            for name in shown.get(int(match[1]), [])
        ]
        return f"{match[0]}\n\n*Seen at work:* {', '.join(links)}.\n" if links else match[0]

    return _HEADING.sub(under, markdown)


def made_pages() -> Iterator[tuple[str, str]]:
    """(name, text) of every page that is made."""
    yield "index.md", (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    for page, rooms in ROOMS.items():
        yield f"reference/{page}.md", "\n\n".join(_room(room) for room in rooms)
    yield "reference/cli.md", command_page()
    yield "reference/http.md", http_page()
    yield "reference/page.md", page_page()
    yield "reference/errors.md", error_page()


def notebook_pages() -> Iterator[tuple[str, str | bytes]]:
    """Every notebook, run; and the list of them."""
    import jupytext

    lines = [
        "# Each theorem at work\n",
        "Notebooks that run in seconds, with a picture each. Take the `.ipynb` and change it: in the project's folder,",
        "`pip install '.[plot,sklearn]' jupyter` is enough for all of them, and `docs/notebooks` has them as scripts.",
        "[The argument](../why.md) says which theorem is where.\n",
    ]
    for script in notebook.scripts():
        page = notebook.run(script)
        lines.append(f"* [{page.title}]({script.stem}.md) ([notebook]({script.stem}.ipynb))")
        yield f"notebooks/{script.stem}.md", page.text
        yield from ((f"notebooks/{name}", picture) for name, picture in page.pictures.items())
        yield f"notebooks/{script.stem}.ipynb", jupytext.writes(jupytext.read(script), fmt="ipynb")
    yield "notebooks/index.md", "\n".join(lines) + "\n"


def _room(name: str) -> str:
    room = importlib.import_module(name)
    entries = []
    for entry in sorted(room.__all__, key=str.lower):
        home = _home(room, entry)
        entries.append(("" if home.endswith(f".{entry}") else f"`{entry}` is\n\n") + f"::: {home}")
    listed = "\n\n".join(entries)
    return f"# `{name}`\n\n{room.__doc__ or ''}\n\n{listed}\n"


def _home(room: Any, entry: str) -> str:
    """Where a public name is defined, so that its docstring is found."""
    value = getattr(room, entry)
    home = getattr(value, "__module__", None)
    if home is None or not hasattr(value, "__qualname__"):
        return getattr(value, "__name__", f"{room.__name__}.{entry}")
    return f"{home}.{value.__qualname__}"


def command_page() -> str:
    """`holdfast --help` and that of every command below."""
    from holdfast.cli import main

    return "# Command line\n\n" + "\n".join(_command(main, "holdfast", None))


def _command(command: click.Command, name: str, above: click.Context | None) -> Iterator[str]:
    context = click.Context(command, info_name=name.split()[-1], parent=above, terminal_width=100)
    yield f"## `{name}`\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in sorted(command.commands):
            yield from _command(command.commands[below], f"{name} {below}", context)


def page_page() -> str:
    """What of the API is where on the page."""
    from holdfast.service.page import controls

    return controls.table()


def http_page() -> str:
    """Every route of the gateway, what it takes and what it may answer."""
    import tempfile

    from holdfast.service import Settings, create_app
    from holdfast.service.problem import CODES

    with tempfile.TemporaryDirectory() as folder:
        schema = create_app(Settings(Path(folder), anchors=Path(folder) / "anchors")).openapi()
    lines = ["# HTTP\n", _HTTP, "", "## Refusals\n", "| status | code | |", "|---|---|---|"]
    lines += [f"| {status} | `{code}` | {title} |" for code, (status, title) in CODES.items()]
    lines += [""]
    for path, methods in sorted(schema["paths"].items()):
        for method, route in methods.items():
            lines += [
                f"## `{method.upper()} {path}`\n",
                route.get("description") or route.get("summary", ""),
                "",
            ]
            body = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
            lines += [*_fields(_flat(body, schema)), ""] if body else []
            good = [code for code in route["responses"] if code < "400"]
            refused = [code for code in route["responses"] if code >= "400"]
            lines += [f"Answers {', '.join(good)}; may refuse with {', '.join(refused)}.", ""]
    return "\n".join(lines)


def _fields(body: dict[str, Any]) -> Iterator[str]:
    """What a request's body may hold, as a table; one of several shapes each with a table of its own."""
    for shape in body.get("oneOf") or body.get("anyOf") or [body]:
        if "properties" not in shape:
            yield f"Takes `{_type(shape)}`."
            continue
        yield from ("| field | type | |", "|---|---|---|")
        for name, field in shape["properties"].items():
            needed = "needed" if name in shape.get("required", []) else ""
            given = "" if field.get("default") is None else f"default `{json.dumps(field['default'])}`"
            words = [word for word in (field.get("description", ""), needed or given) if word]
            yield f"| `{name}` | {_type(field)} | {'; '.join(words)} |"


def _type(field: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(one) for one in field["anyOf"]))
    if "enum" in field or "const" in field:
        return " or ".join(f"`{word}`" for word in field.get("enum", [field.get("const")]))
    if field.get("type") == "array":
        return f"list of {_type(field.get('items', {}))}"
    return str(field.get("type") or field.get("$ref", "anything").rsplit("/", 1)[-1])


def _flat(schema: Any, whole: Any) -> Any:
    """A schema with its references one level deep written out."""
    found = schema.get("$ref", "").rsplit("/", 1)[-1]
    return whole["components"]["schemas"].get(found, schema)


def error_page() -> str:
    """The tree of errors with what each means."""
    from holdfast import errors

    top, _, rest = (errors.__doc__ or "").partition("\n\n")
    tree, _, grammar = rest.rpartition("\n\n")
    kinds = [
        f"## `{name}`\n\n{kind.__doc__}\n"
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    ]
    seen = "[When something is refused](../refusals.md) has the refusals that people meet first."
    return f"# Errors\n\n{top}\n\n```text\n{tree}\n```\n\n{grammar}\n\n{seen}\n\n" + "\n".join(kinds)
