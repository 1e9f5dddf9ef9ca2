"""The owner's declaration of a table: column names, types and bounds. All of it is public."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import SchemaError
from holdfast.query.calling import constructed
from holdfast.query.column import Boolean, Category, ColumnType, Integer, Real, Text, column_from_json
from holdfast.query.reading import is_utf8
from holdfast.query.temporal import Date, Temporal, Time, Timestamp

__all__ = [
    "Boolean",
    "Category",
    "ColumnType",
    "Date",
    "Integer",
    "Real",
    "Schema",
    "Temporal",
    "Text",
    "Time",
    "Timestamp",
]


@constructed
class Schema(Mapping[str, ColumnType]):
    """Columns by name, in the declared order. Frozen and hashable; two are equal if written the same way.

    >>> Schema(age=Integer(0, 120), smoker=Category("no", "yes"))["age"].hi
    120
    """

    __slots__ = ("_columns", "_hash")
    _columns: dict[str, ColumnType]
    _hash: int

    def __init__(self, /, **columns: ColumnType) -> None:
        self._fill(columns)

    @classmethod
    def from_mapping(cls, columns: Mapping[str, ColumnType]) -> Schema:
        """A schema with any column names, also those that are not Python identifiers."""
        if not isinstance(columns, Mapping):
            raise SchemaError(f"expected a mapping from names to column types, got {type(columns).__name__}")
        schema = cls.__new__(cls)
        schema._fill(dict(columns))
        return schema

    def _fill(self, columns: dict[str, ColumnType]) -> None:
        if not columns:
            raise SchemaError(
                "a schema needs at least one column, got none; write Schema(age=Integer(0, 120))"
            )
        for name, column in columns.items():
            _check_name(name)
            if not isinstance(column, ColumnType):
                raise SchemaError(
                    f"expected Integer, Real, Category, Boolean, Date, Time, Timestamp or Text as column {name!r}, got "
                    f"{column if isinstance(column, type) else type(column).__name__}"
                )
        object.__setattr__(self, "_columns", columns)
        object.__setattr__(self, "_hash", hash(tuple(columns.items())))

    def __getitem__(self, name: str) -> ColumnType:
        return self._columns[name]

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self is other or (
            self._hash == other._hash and list(self._columns.items()) == list(other._columns.items())
        )

    def __hash__(self) -> int:
        return self._hash

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema is frozen; {name!r} cannot be set")

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.from_mapping, (self._columns,)

    def __repr__(self) -> str:
        return f"Schema({', '.join(f'{name}={column!r}' for name, column in self.items())})"

    def spelling(self, name: str) -> str | None:
        """The declared name of a column, however it is written; None if there is none."""
        return name if name in self else None

    @property
    def texts(self) -> dict[str, Text]:
        """The text columns, by the names that sessions keep their keys under."""
        return {name: kind for name, kind in self.items() if isinstance(kind, Text)}

    def retyped(self, types: Mapping[str, ColumnType]) -> Schema:
        """The same columns, some of them with another type."""
        return Schema.from_mapping({name: types.get(name, kind) for name, kind in self.items()})

    def ordered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Names in the declared order."""
        wanted = frozenset(names)
        return tuple(name for name in self if name in wanted)

    def to_json(self) -> dict[str, Any]:
        """A JSON value; columns are a list, so that the order survives sorted keys."""
        return {"columns": [{"name": name, **column.to_json()} for name, column in self.items()]}

    @classmethod
    def from_json(cls, value: object) -> Schema:
        """The schema that `to_json` wrote."""
        if not isinstance(value, Mapping) or not isinstance(value.get("columns"), list):
            raise SchemaError("expected a JSON object with a list of columns, got another value")
        columns: dict[str, ColumnType] = {}
        for entry in value["columns"]:
            fields = dict(entry) if isinstance(entry, Mapping) else {}
            name = fields.pop("name", None)
            _check_name(name)
            if name in columns:
                raise SchemaError(f"expected distinct names of columns, got {name!r} twice")
            columns[name] = _named(name, fields)
        return cls.from_mapping(columns)

    @classmethod
    def from_toml(cls, path: str | Path) -> Schema:
        """Read a schema file: one table `[columns.NAME]` with `type` and its settings for each column."""
        import tomllib

        if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not is_utf8(str(path)):
            raise SchemaError(f"expected the path of a schema file, got {type(path).__name__}")
        try:
            tree = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SchemaError(f"{path} is not a TOML file: {error}; write [columns.NAME] tables") from None
        except OSError as error:
            raise SchemaError(f"{path} cannot be read: {error.strerror}; see to the file") from None
        columns = tree.get("columns")
        if not isinstance(columns, dict) or set(tree) != {"columns"}:
            raise SchemaError(f"expected only [columns.NAME] tables in {path}, got {sorted(tree)}")
        return cls.from_mapping({name: _named(name, fields) for name, fields in columns.items()})

    def to_toml(self) -> str:
        """The text of a schema file that `from_toml` reads back."""
        lines: list[str] = []
        for name, column in self.items():
            lines.append(f"[columns.{_toml(name)}]")
            lines += [f"{key} = {_toml(value)}" for key, value in column.to_json().items()]
            lines.append("")
        return "\n".join(lines)


def declared(schema: object) -> object:
    """The schema that `open` was given as a Schema, a dict of columns or the path of a schema file; or one by table."""
    if isinstance(schema, str | Path):
        return Schema.from_toml(schema)
    if isinstance(schema, Schema) or not isinstance(schema, Mapping):
        return schema
    if not schema or any(isinstance(each, ColumnType) for each in schema.values()):
        return Schema.from_mapping(schema)
    return {name: declared(each) for name, each in schema.items()}


def _named(name: str, fields: object) -> ColumnType:
    try:
        return column_from_json(fields)
    except SchemaError as error:
        raise SchemaError(f"column {name!r}: {error}") from None


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name or not is_utf8(name):
        raise SchemaError(f"expected a non-empty text as the name of a column, got {name!r}")
    if any(unicodedata.category(c) == "Cc" for c in name):
        raise SchemaError(f"expected the name of a column without control characters, got {name!r}")


def _toml(value: str | float | list[Any]) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, str):  # JSON's escapes are TOML's; only DEL is legal in one and not in the other
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)
