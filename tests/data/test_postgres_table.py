"""Units set aside on a server: PostgreSQL tables that were written to or rewritten are refused; look-ups and parts."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import psycopg
import pytest
from services import postgres

import holdfast as hf
from holdfast.data import postgres as source_module
from holdfast.data.deferred import DeferredSource
from holdfast.errors import DataError
from holdfast.ledger import SqliteLedger
from holdfast.session.set_aside import part_of

ROWS = 2_000
SCHEMA = hf.Schema(id=hf.Integer(0, ROWS - 1))
serial = itertools.count()
MOVES = {
    "vacuum full": "VACUUM FULL {0}",
    "cluster": "CLUSTER {0} USING {0}_pad",
    "update": "UPDATE {0} SET pad = 1 WHERE id = 3",
    "replaced": "DELETE FROM {0} WHERE id = 3; INSERT INTO {0} VALUES (3, 4)",
}


def numbered() -> str:
    """Rows in the order of their ids, whose index would put them in another."""
    name = f"divided_{next(serial)}"
    postgres().execute(
        f"CREATE TABLE {name} (id int, pad int); "
        f"INSERT INTO {name} SELECT i, -i FROM generate_series(0, {ROWS - 1}) AS i; "
        f"CREATE INDEX {name}_pad ON {name} (pad)"
    )
    return name


def held(table: hf.Table) -> set[int]:
    return {int(i) for block in table._source.scan(["id"]) for i in block["id"]}


def divided(name: str, ledger: Path, **how: float) -> hf.Table:
    return hf.open(postgres().url, SCHEMA, table=name, ledger=ledger, **how)  # type: ignore[arg-type]


def change(name: str, sql: str) -> None:
    with psycopg.connect(postgres().url, autocommit=True) as connection:
        for statement in sql.format(name).split("; "):
            connection.execute(statement)  # type: ignore[arg-type]


def test_parts_of_a_server_table_share_no_row_and_stay(tmp_path: Path) -> None:
    name = numbered()
    table = divided(name, tmp_path / "l.sqlite", set_aside=0.1)
    rest, aside = held(table), held(table.aside)
    assert (len(rest), len(aside)) == (1_800, 200) and rest | aside == {*range(ROWS)}
    assert {*table._source.draw(["id"], 20_000)["id"]} == rest
    answer = table.session(rho=1e6, target="table").count("id < 1000", rho=1e4)
    assert round(answer.value) == sum(i < 1000 for i in rest), "totals are not pushed down to all rows"
    table.close()
    change(name, "VACUUM {0}")
    again = divided(name, tmp_path / "l.sqlite")
    assert held(again) == rest and held(again.aside) == aside
    again.close()


@pytest.mark.parametrize("move", MOVES)
def test_rows_that_moved_or_changed_are_refused_before_anything_is_charged(move: str, tmp_path: Path) -> None:
    name = numbered()
    divided(name, tmp_path / "l.sqlite", set_aside=0.1).close()
    change(name, MOVES[move])
    for how in ({}, {"set_aside": 0.1}):
        with pytest.raises(DataError, match="in the order in which units were set aside"):
            divided(name, tmp_path / "l.sqlite", **how)
    ledger = SqliteLedger(tmp_path / "l.sqlite")
    assert ledger.totals().entries == 0
    late = DeferredSource(SCHEMA, ROWS, postgres().url, name)  # a gateway's: looked for at the first answer
    with pytest.raises(DataError, match="in the order in which units were set aside"):
        part_of(late, ledger, "rest").gather(["id"], np.arange(3))
    ledger.close()


def test_a_twin_that_does_not_look_mixes_the_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = numbered()
    table = divided(name, tmp_path / "l.sqlite", set_aside=0.1)
    aside = held(table.aside)
    table.close()
    change(name, MOVES["cluster"])
    monkeypatch.setattr(source_module, "refuse_another_order", lambda *given: None)
    again = divided(name, tmp_path / "l.sqlite")
    assert held(again) & aside, "units that were set aside are read as others"
    again.close()


def test_looked_up_columns_follow_their_rows_into_each_part(tmp_path: Path) -> None:
    groups = {"id": np.arange(ROWS), "odd": np.arange(ROWS) % 2 == 1}
    lookups = {"facts": hf.Lookup(groups, key="id")}
    name = numbered()
    for data, how in ((postgres().url, {"table": name}), ({"id": np.arange(ROWS)}, {})):
        ledger = tmp_path / f"{len(how)}.sqlite"
        table = hf.open(data, SCHEMA, lookups=lookups, ledger=ledger, set_aside=0.1, **how)  # type: ignore[arg-type]
        parts = table, table.aside
        assert not held(table) & held(table.aside)
        for part in parts:
            for block in part._source.scan(["id", "facts.odd"]):
                np.testing.assert_array_equal(block["facts.odd"], block["id"] % 2)
        odd = sum(i % 2 for i in held(table))
        asked = table.session(rho=1e6, target="table").count("facts.odd", rho=1e4)
        assert round(asked.value) == odd
        table.close()
