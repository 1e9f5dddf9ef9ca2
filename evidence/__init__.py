"""The experiments behind docs/evidence.md. Run `python evidence/run.py`."""
