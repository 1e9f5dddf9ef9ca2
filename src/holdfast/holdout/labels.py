"""The labels of a holdout, and what is public about them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.holdout.fingerprint import labels_array

if TYPE_CHECKING:
    from holdfast.holdout.unit_rows import UnitRows


class Labels:
    """Labels, one for each row or one in each of several columns. Public are their number, whether they are text, and
    which classes there are.

    Everything else about `values` is secret. `units` says which rows are of one unit, where that is not a row.
    """

    def __init__(self, labels: ArrayLike) -> None:
        self.values = labels_array(labels)
        self.units: UnitRows | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def independent(self) -> int:
        """How many units there are: rows, unless `units` says otherwise."""
        return len(self.values) if self.units is None else len(self.units)

    @property
    def text(self) -> bool:
        """Whether they are text; numbers otherwise."""
        return self.values.dtype.kind == "U"

    @property
    def columns(self) -> tuple[int, ...]:
        """() for one column, (d,) for d of them: several outputs, or the documents of a query."""
        return tuple(self.values.shape[1:])

    @cached_property
    def present(self) -> NDArray[Any]:
        """The classes that some row has, in order."""
        return np.unique(self.values)

    @cached_property
    def two(self) -> bool:
        """Whether all are 0 or 1."""
        return not self.text and bool(((self.values == 0) | (self.values == 1)).all())

    @cached_property
    def classes(self) -> NDArray[Any]:
        """The classes in order, as scikit-learn has them; 0 and 1 if `two`, also where one of them is missing."""
        return np.array([0, 1]) if self.two else self.present

    def numbers(self, held: NDArray[Any]) -> NDArray[np.int64]:
        """The numbers of some labels' classes; of what is no class, the number of classes."""
        places = np.minimum(np.searchsorted(self.classes, held), len(self.classes) - 1)
        return np.where(self.classes[places] == held, places, len(self.classes))

    def take(self, ids: NDArray[np.int64] | None) -> NDArray[Any]:
        """The labels of some rows, None for all; integers as int64: small ones would overflow in a metric."""
        held = self.values if ids is None else self.values.take(ids, axis=0, mode="clip")
        return held.astype(np.int64) if held.dtype.kind == "i" else held
