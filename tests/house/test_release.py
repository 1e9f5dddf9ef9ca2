"""What others pick up: one version, a complete sdist, workflows that a linter accepts, hooks and forms that parse."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import yaml

from holdfast import __version__

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = ROOT / ".github" / "workflows"
NOT_SHIPPED = (".github/", ".gitignore", ".pre-commit-config.yaml")
"""What only a checkout needs."""


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def test_the_version_has_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "holdfast.__version__"}
    assert project["project"]["license"] == "Apache-2.0"
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == __version__
    assert citation["license"] == "Apache-2.0"
    assert citation["cff-version"] == "1.2.0"
    assert {"title", "message", "authors", "date-released"} <= set(citation)


def test_the_sdist_holds_what_is_needed_to_test_it(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in tracked():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    made = subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=source, capture_output=True, text=True, timeout=300
    )
    assert made.returncode == 0, made.stderr
    archive = tmp_path / f"holdfast-{__version__}.tar.gz"
    with tarfile.open(archive) as packed:
        inside = {name.partition("/")[2] for name in packed.getnames()}
    missing = {name for name in tracked() if not name.startswith(NOT_SHIPPED)} - inside
    assert not missing


def zizmor(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "zizmor"), "--offline", "--no-progress", "--format", "json"]
    return subprocess.run([*command, *map(str, paths)], capture_output=True, text=True, timeout=120)


def test_workflows_pass_a_linter() -> None:
    """They were not run here. The linter parses them and looks for what attackers use."""
    found = zizmor(WORKFLOWS)
    severe = [one["ident"] for one in json.loads(found.stdout)]
    assert severe in ([], ["use-trusted-publishing"]), found.stdout


def test_a_workflow_that_trusts_a_title_is_caught(tmp_path: Path) -> None:
    """The broken twin: what a stranger writes becomes a command, and an action follows a tag."""
    (tmp_path / ".github" / "workflows").mkdir(parents=True)
    text = (WORKFLOWS / "test.yml").read_text()
    text = text.replace("bash .ci/run", "echo ${{ github.event.pull_request.title }}")
    (tmp_path / ".github" / "workflows" / "test.yml").write_text(re.sub(r"@[0-9a-f]{40} #", "@main #", text))
    found = {one["ident"] for one in json.loads(zizmor(tmp_path).stdout)}
    assert {"template-injection", "unpinned-uses"} <= found


def test_the_workflow_tests_every_python_that_the_package_names() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {line.rsplit(" ", 1)[1] for line in project["classifiers"] if " :: 3." in line}
    tested = yaml.safe_load((WORKFLOWS / "test.yml").read_text())["jobs"]["test"]["strategy"]["matrix"][
        "python"
    ]
    assert set(tested) == named


def test_hooks_and_forms_are_read() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    check = (ROOT / "Makefile").read_text()
    for hook in hooks:
        tool = hook["entry"].split()[0].removeprefix(".venv/bin/")
        assert f"$(BIN)/{tool}" in check
    for form in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        text = yaml.safe_load(form.read_text())
        if form.name != "config.yml":
            assert {"name", "description", "body"} <= set(text)
            assert any(part.get("validations", {}).get("required") for part in text["body"])


def unreadable(changelog: str) -> list[str]:
    """Entries that run on, and headings or entries that stand twice."""
    version = changelog.partition("\n## ")[2]
    headings = re.findall(r"^#+ .*$", version, re.M)
    entries = [" ".join(entry.split()) for entry in re.findall(r"^\* .*(?:\n  .*)*", version, re.M)]
    twice = {line for lines in (headings, entries) for line in lines if lines.count(line) > 1}
    return [*(entry for entry in entries if len(entry) > 300), *sorted(twice)]


def test_the_changelog_is_short_lines_under_headings() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    advice = "a merge brought old lines back? git checkout main -- CHANGELOG.md, then add your line"
    assert unreadable(text) == [] and text.count("\n") < 180, advice
    line = "* New: " + "what it does inside, and why, " * 10
    assert unreadable(f"{text}\n{line}\n### SQL\n") == [line.strip(), "### SQL"]
