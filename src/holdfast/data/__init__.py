"""Where rows live: in memory, in a store, behind DuckDB; always as codes."""

__all__: list[str] = []
