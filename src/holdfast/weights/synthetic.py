"""Synthetic data: released weights, rows drawn from them, and files that hold the rows."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import InputError
from holdfast.noise.bits import Bits
from holdfast.query.region import region
from holdfast.query.schema import Boolean, Category, ColumnType, Integer, Schema, Temporal
from holdfast.query.universe import Universe
from holdfast.session.answer_columns import pandas_frame, polars_frame
from holdfast.weights.binned_model import BinnedModel
from holdfast.weights.distribution import Weights
from holdfast.weights.weighted_rows import sample

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True, repr=False)
class SyntheticTable:
    """What was released. Everything in it is public; using it costs nothing.

    `rho` is what it cost; `explanation` says which theorem covers it and what it promises. `measured` are the marginals
    that it was fitted to, each with the interval of its numbers, where the method measures such.
    """

    weights: Weights | BinnedModel
    method: str
    rho: float
    explanation: str
    measured: Sequence[Any] = ()

    @property
    def universe(self) -> Universe:
        return self.weights.universe

    @property
    def schema(self) -> Schema:
        """The declared types of the synthetic columns."""
        full = self.universe.schema
        return Schema.from_mapping({name: full[name] for name in self.universe.columns})

    def fraction(self, where: str) -> float:
        """The fraction of the synthetic population that satisfies a condition."""
        return self.weights.fraction(region(self.universe, where))

    def rows(self, count: int, *, bits: Bits | None = None) -> dict[str, list[object]]:
        """Synthetic rows, as lists of values by column."""
        return sample(self.weights, count, bits)

    def __repr__(self) -> str:
        return (
            f"<synthetic table of {', '.join(self.universe.columns)}: rho {self.rho:.3g}; {self.explanation}>"
        )

    def to_pandas(self, count: int) -> pandas.DataFrame:
        """Synthetic rows as a pandas DataFrame."""
        return pandas_frame(self.rows(count))

    def to_polars(self, count: int) -> polars.DataFrame:
        """Synthetic rows as a Polars DataFrame."""
        return polars_frame(self.rows(count))

    def plot(self, path: Path | str | None = None) -> Figure:
        """A matplotlib figure: each measured column beside the model, with the intervals of the table. Public, costs
        nothing: what is drawn of the real rows is what was measured. Written to `path`, if one is given."""
        from holdfast.weights.model_picture import picture

        return picture(self, path)

    def write(self, path: str | Path, count: int, *, bits: Bits | None = None) -> Path:
        """Write `count` synthetic rows as .csv or .parquet; beside it, the schema as .toml."""
        target = Path(path)
        if target.suffix not in (".csv", ".parquet"):
            raise InputError(f"expected a path that ends in .csv or .parquet, got {target.name!r}")
        rows = self.rows(count, bits=bits)
        if target.suffix == ".csv":
            write_csv(target, rows)
        else:
            _write_parquet(target, rows, self.schema)
        target.with_suffix(".toml").write_text(self.schema.to_toml(), encoding="utf-8")
        return target


def write_csv(path: Path, rows: dict[str, list[Any]]) -> None:
    """Rows with a header; NULL is empty, truth values are true and false."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(rows)
        for row in zip(*rows.values(), strict=True):
            writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in row])


def _write_parquet(path: Path, rows: dict[str, list[Any]], schema: Schema) -> None:
    """Through a CSV file, which DuckDB reads with the declared types."""
    import tempfile

    import duckdb

    types = {name: _sql_type(kind) for name, kind in schema.items()}
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as engine:
        source = Path(folder) / "rows.csv"
        write_csv(source, rows)
        given = ", ".join(f"{_text(name)}: {_text(kind)}" for name, kind in types.items())
        engine.execute(
            f"COPY (SELECT * FROM read_csv({_text(str(source))}, header = true, columns = {{{given}}})) "
            f"TO {_text(str(path))} (FORMAT parquet)"
        )


def _sql_type(kind: ColumnType) -> str:
    if isinstance(kind, Boolean):
        return "BOOLEAN"
    if isinstance(kind, Integer):
        return "BIGINT"
    if isinstance(kind, Temporal):
        return kind.kind.upper()
    return "VARCHAR" if isinstance(kind, Category) else "DOUBLE"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
