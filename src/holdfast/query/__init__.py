"""Public questions: what may be asked, what it means, and nothing about the rows."""

__all__: list[str] = []
