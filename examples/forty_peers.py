"""The same questions put to OpenDP, SmartNoise SQL and diffprivlib: same rows, same budget, each in an interpreter of
its own.

    for peer in "opendp[polars]" smartnoise-sql diffprivlib; do
        python -m venv build/venvs/${peer%%[-[]*} && build/venvs/${peer%%[-[]*}/bin/pip install "$peer" pandas
    done
    python examples/forty_peers.py build/venvs

What a peer says is kept as JSON beside the rows, in build/peers, and not asked for again; delete it to ask anew. A peer
that is not there is "not installed". An error is that of the value in the middle group, in one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from forty_questions import Outcome, flights, outcomes, survey, truth

ROOT = Path(__file__).resolve().parent
PEERS = {"opendp": "OpenDP", "smartnoise": "SmartNoise SQL", "diffprivlib": "diffprivlib"}
Said = dict[str, Any]


def written(folder: Path, most: int | None = None) -> dict[str, Any]:
    """The rows as files that every peer can read, and as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    data = {"flights": flights(most), "survey": survey() if most is None else survey(most)}
    for name, (rows, _, beside) in data.items():
        for called, frame in {name: rows, **beside}.items():
            texts = frame.assign(date=frame["date"].astype(str)) if "date" in frame else frame
            texts.to_csv(folder / f"{called}.csv", index=False)
    return data


def asked(peer: str, python: Path, folder: Path) -> Said | None:
    """What a peer says to every question; None if it is not installed."""
    kept = folder / f"{peer}.json"
    if not kept.exists():
        if not python.exists():
            return None
        command = [str(python), str(ROOT / "peer_questions" / "ask.py"), peer, str(folder), "1"]
        kept.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    found: Said = {}
    for line in kept.read_text().splitlines():
        found |= json.loads(line)
    return found


def error(said: Said, true: list[dict[tuple[str, ...], float]]) -> tuple[float, int]:
    """How far a peer's values are from the truth, in the middle group; and how many groups it told."""
    several = {(str(place),): part[()] for place, part in enumerate(true)} if len(true) > 1 else true[0]
    exact = {_plain(key): value for key, value in several.items()}
    (run,) = said["runs"]
    told = {_plain(tuple(key)): value for key, value in run}
    far = [abs(told[key] - value) for key, value in exact.items() if key in told]
    assert far, (said, exact)
    return float(np.median(far)), len(far)


def _plain(key: tuple[str, ...]) -> tuple[str, ...]:
    """1.0 and 1 are one key."""
    return tuple(part.removesuffix(".0") for part in key)


def table(ours: list[Outcome], peers: dict[str, Said | None], data: dict[str, Any]) -> str:
    """As a table in Markdown: lines, and the error beside the truth."""
    names = ["Holdfast"] + [
        PEERS[peer] + ("" if said is None else f" {said['version']}") for peer, said in peers.items()
    ]
    lines = [f"| # | question | truth | {' | '.join(names)} |", "|---" * (len(names) + 3) + "|"]
    for outcome in ours:
        question = outcome.question
        if question.refused:
            continue
        rows, _, beside = data[question.of]
        true = truth(question, rows, beside)
        cells = [f"1 line, {outcome.error:.3g} (±{outcome.width:.3g})"]
        for said in peers.values():
            cells.append(_cell(None if said is None else said.get(str(question.number)), said, true))
        lines.append(f"| {question.number} | {question.asks} | {outcome.truth:.4g} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(answer: Said | None, said: Said | None, true: list[dict[tuple[str, ...], float]]) -> str:
    if said is None:
        return "not installed"
    if answer is None:
        return "not run"
    if "no" in answer:
        return "no"
    far, groups = error(answer, true)
    expected = len(true) if len(true) > 1 else len(true[0])
    some = "" if groups >= expected else f", {groups} of {expected} groups"
    return f"{answer['lines']} line{'s' if answer['lines'] > 1 else ''}, {far:.3g}{some}"


def main(venvs: Path, folder: Path) -> None:
    """Ask all, and print the table."""
    data = written(folder)
    peers = {peer: asked(peer, venvs / peer / "bin" / "python", folder) for peer in PEERS}
    print(table(outcomes(), peers, data))


if __name__ == "__main__":
    main(
        Path(sys.argv[1] if len(sys.argv) > 1 else ROOT.parent / "build" / "venvs"),
        ROOT.parent / "build" / "peers",
    )
