"""The doctor: what is there is found, what is missing is named with the way to have it."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
from click.testing import CliRunner

from holdfast import __version__, doctor
from holdfast.cli import main


def test_a_whole_installation_is_fine() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "doctor"], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert __version__ in result.stdout
    assert f"numpy {metadata.version('numpy')}" in result.stdout


def test_a_missing_core_package_fails_and_a_missing_extra_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version

    def without(*absent: str) -> None:
        def version(name: str) -> str:
            if name in absent:
                raise metadata.PackageNotFoundError(name)
            return installed(name)

        monkeypatch.setattr(doctor.metadata, "version", version)

    without("matplotlib")
    extra = CliRunner().invoke(main, ["doctor"])
    assert extra.exit_code == 0
    assert "pip install 'holdfast[plot]'" in extra.output
    without("duckdb")
    core = CliRunner().invoke(main, ["doctor"])
    assert core.exit_code == 1
    assert "missing  duckdb         pip install duckdb" in core.output


def test_noise_that_cannot_be_drawn_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> str:
        raise OSError("no entropy")

    monkeypatch.setattr(doctor, "_draws", broken)
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert "OSError: no entropy" in result.output


def test_every_extra_of_the_package_is_looked_for() -> None:
    declared = set(metadata.metadata("holdfast").get_all("Provides-Extra") or ())
    assert set(doctor._EXTRAS) == declared - {"all", "dev"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_complete(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in result.output
