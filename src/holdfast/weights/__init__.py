"""Private multiplicative weights over the cells of a few columns, and the synthetic rows they give."""

__all__: list[str] = []
