"""Addresses, tokens, tables and boards."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from gateway import LABELS, ROWS, Running, labels, people, running

import holdfast as hf
from holdfast.client.address import address, token_for
from holdfast.client.problem_errors import refusal
from holdfast.service.problem import CODES, Problem

TOKEN = "hf_0123456789ab_" + "c" * 64


@pytest.mark.parametrize(
    "url",
    ["", "holdfast.example.org", "ftp://host", "http://", "https://me:secret@host", "https://host/?token=x",
     "https://host:port", None],
)  # fmt: skip
def test_an_address_is_http(url: str) -> None:
    with pytest.raises(hf.InputError, match="expected an address") as refused:
        hf.connect(url, TOKEN)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.8.8", "[::1]"])
def test_a_token_may_travel_within_this_machine(host: str) -> None:
    assert token_for(address(f"http://{host}:8080"), TOKEN, insecure=False) == TOKEN


@pytest.mark.parametrize(
    "host", ["example.org", "10.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "[::2]"]
)
def test_a_token_does_not_leave_it_unencrypted(host: str) -> None:
    with pytest.raises(hf.GatewayError, match="https://") as refused:
        hf.connect(f"http://{host}", TOKEN)
    assert refused.value.code == "insecure"
    assert token_for(address(f"https://{host}"), TOKEN, insecure=False) == TOKEN
    assert token_for(address(f"http://{host}"), TOKEN, insecure=True) == TOKEN


def test_the_token_may_come_from_the_environment(house: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_TOKEN", house.analyst)
    with hf.connect(house.url) as connection:
        assert connection.me["name"] == "ann"
    monkeypatch.delenv("HOLDFAST_TOKEN")
    with pytest.raises(hf.InputError, match="HOLDFAST_TOKEN"):
        hf.connect(house.url)


def test_the_token_is_never_shown(house: Running) -> None:
    with hf.connect(house.url, house.analyst) as connection:
        session, table = connection.session(), connection.table("people")
        for thing in (connection, session, table, connection.tables, connection.leaderboard("board")):
            assert house.analyst not in repr(thing) + str(thing)
    with pytest.raises(hf.InputError) as refused:
        hf.connect(house.url, house.analyst + "\r\nX-Other: 1")
    assert house.analyst[-20:] not in str(refused.value)


def test_who_is_not_let_in(house: Running) -> None:
    with pytest.raises(hf.GatewayError, match="token") as refused:
        hf.connect(house.url, TOKEN)
    assert (refused.value.code, refused.value.status) == ("unauthorized", 401)
    with hf.connect(house.url, house.analyst) as connection:
        with pytest.raises(hf.GatewayError) as missing:
            connection.table("secrets/../people")
        assert (missing.value.code, missing.value.status) == ("not-found", 404)
    with hf.connect(house.url, house.auditor) as connection:
        assert connection.table("people").rows == ROWS
        with pytest.raises(hf.InputError, match="an owner must admit you"):
            connection.session("people")


def test_nobody_there() -> None:
    with pytest.raises(hf.GatewayError, match=r"no reply from 127\.0\.0\.1 in 1 try") as refused:
        hf.connect("http://127.0.0.1:9", TOKEN, retries=0)
    assert refused.value.code == "unreachable"


def test_tables() -> None:
    with running({"people": people(100), "others": people(200)}) as house:
        with hf.connect(house.url, house.analyst) as connection:
            assert [(table.id, table.rows) for table in connection.tables] == [
                ("others", 200),
                ("people", 100),
            ]
            table = connection.table("people")
            assert table.schema == people(1).schema
            assert table.spent == 0.0 and (table.confidence, table.target) == (0.95, "population")
            with pytest.raises(hf.InputError, match="others, people"):
                connection.session()
            assert connection.session("others").schema == table.schema
        assert hf.connect(house.url, house.analyst, table="people").schema == table.schema


def test_a_leaderboard(house: Running) -> None:
    with hf.connect(house.url, house.analyst) as connection:
        assert connection.leaderboards == ["board"]
        board = connection.leaderboard("board")
        assert (board.rows, board.metric, board.looks_left, board.private) == (LABELS, "accuracy", 3, True)
        answer = board.submit(labels("board"), key="mine")
        assert answer.value > 0.5
        assert board.submit(labels("board"), key="mine") == answer
        assert board.looks_left == 2
        (first,) = board.standings()
        assert (first.rank, first.team, first.value, first.submissions) == (1, "ann", answer.value, 1)
        board.submit(1 - labels("board"))
        board.submit(np.zeros(LABELS, dtype=bool))
        with pytest.raises(hf.BudgetError):
            board.submit(labels("board"))
        with pytest.raises(hf.InputError, match="each of 5,000 rows"):
            board.submit([0, 1])
        with pytest.raises(hf.InputError, match="no code travels"):
            board.submit(lambda rows: rows)


def test_a_holdout(house: Running) -> None:
    with hf.connect(house.url, house.analyst) as connection:
        assert connection.holdouts == ["held"]
        held = connection.holdout("held")
        assert held.width is not None and held.width <= 0.2
        left, answer = held.looks_left, held.score(labels("held"))
        assert answer.value > 0.5
        verdict = held.check(0.99, labels("held"))
        assert verdict.fine == (verdict.answer.low <= 0.99 <= verdict.answer.high)
        assert not held.check(0.1, labels("held"), key="k").fine
        assert held.looks_left == left - 3
        same = held.compare(labels("held"), labels("held"), key="same")
        assert same.low <= 0 <= same.high
        assert held.compare(labels("held"), 1 - labels("held"), expect=0.5).low > 0
        assert held.score(labels("held"), metric="error").value < 0.5
        assert held.alarms_left is None
        chances = np.column_stack([1 - labels("held"), labels("held")]) * 0.8 + 0.1
        assert held.score(chances, metric="brier").value < 0.1
        weights = np.arange(len(chances)) % 2 + 1.0
        assert held.score(labels("held"), sample_weight=weights, most_weight=2.0).high > 0.8
        assert held.score(labels("held"), metric="f1(0)").low > 0.5
        for wrong in ("nonsense", "f1(spam)"):
            with pytest.raises(hf.InputError, match="metric"):
                held.score(labels("held"), metric=wrong)


def test_every_code_of_the_gateway_is_an_error_of_ours() -> None:
    for code in CODES:
        error = refusal(CODES[code][0], json.dumps(Problem(code, "words").body()).encode())
        assert isinstance(error, hf.HoldfastError) and "words" in str(error)
    assert isinstance(refusal(200, b"[]"), hf.GatewayError)
    assert isinstance(refusal(503, json.dumps(Problem("unavailable").body()).encode()), hf.LedgerError)


def test_the_client_needs_no_server() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['fastapi', 'uvicorn', 'pydantic', 'starlette', 'IPython']))\n"
        "import holdfast as hf; hf.connect, hf.load_ipython_extension\n"
        "assert not [name for name in sys.modules if name.startswith('holdfast.service')]"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)
