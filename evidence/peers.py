"""Audit the mechanisms of diffprivlib, in whichever environment has it, and keep the table.

Its current version does not import beside the current scikit-learn, so it cannot live in the project's own
environment:

    python -m venv build/peer && build/peer/bin/pip install diffprivlib "scikit-learn<1.5"
    PYTHONPATH=src build/peer/bin/python evidence/peers.py
"""

from __future__ import annotations

import sys
import warnings
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
RECORD = ROOT / "evidence" / "diffprivlib.md"


def main() -> int:
    """Write the record; exit status 1 if diffprivlib is not here."""
    from holdfast.audit.audit_report import run_all
    from holdfast.audit.peer_cases import peers

    warnings.simplefilter("ignore")  # of the peer
    cases = [case for case in peers() if case.origin == "diffprivlib"]
    if not cases:
        print("diffprivlib is not installed here")
        return 1
    report = run_all(cases=cases)
    RECORD.write_text(f"diffprivlib {version('diffprivlib')}, recorded apart:\n\n{report.to_markdown()}")
    print(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
