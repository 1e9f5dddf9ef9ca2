"""Bits in, exact samples out.

Every random number of Holdfast starts as a uniform bit in `bits` and becomes a sample here. Parameters are
rational, laws are exact, and no float decides an outcome: what a rounded table leaves open is settled by
integer arithmetic and further bits.
"""

__all__: list[str] = []
