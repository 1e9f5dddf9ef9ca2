"""Calls over a network that loses things: one charge and one answer, however often a call is made.

And certificates are checked: a token is not told to whoever answers.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NoReturn
from urllib.request import urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from gateway import Running, serving

import holdfast as hf
from client.lossy import Lossy, lossy
from holdfast.client import Connection, RemoteSession, wire
from holdfast.client.wire import Reply, Wire

SENT_TWICE = ["dropped", "half", "502"]
"""Fates after which the gateway has charged, and the analyst has nothing."""


@pytest.fixture(scope="module")
def network(house: Running) -> Iterator[Lossy]:
    """A lossy network before the gateway."""
    with lossy(house.url) as proxy:
        yield proxy


@pytest.fixture
def session(house: Running, network: Lossy, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteSession]:
    """The analyst's session over the lossy network, with hardly a pause between tries."""
    monkeypatch.setattr(wire, "_FIRST_WAIT", 0.001)
    network.fates, network.keys = [], []
    network.answered.clear()
    with hf.connect(network.url, house.analyst, retries=4) as connection:
        yield connection.session()


def charges(house: Running) -> int:
    """How many charges stand in the table's ledger."""
    return house.gateway.tables.ledger("people").totals().entries


class Careless(Wire):
    """The broken twin: a new key for each try."""

    def _try(self, method: str, path: str, body: bytes | None, key: str | None) -> Reply:
        return super()._try(method, path, body, None if key is None else uuid.uuid4().hex)


@pytest.mark.parametrize("fate", [*SENT_TWICE, "refused", "429"])
def test_a_vote_is_charged_once(fate: str, house: Running, network: Lossy, session: RemoteSession) -> None:
    before = charges(house)
    network.fates = [fate, fate]
    assert session.sample("age > 40") in (True, False)
    assert charges(house) == before + 1
    assert len(network.keys) == 3 and len(set(network.keys)) == 1


@pytest.mark.parametrize("fate", SENT_TWICE)
def test_a_new_key_for_each_try_would_be_charged_again(
    fate: str, house: Running, network: Lossy, session: RemoteSession
) -> None:
    before = charges(house)
    session._wire.__class__ = Careless
    network.fates = [fate, fate]
    session.sample("age > 40")
    assert charges(house) > before + 1
    assert len(set(network.keys)) > 1


def test_a_call_that_arrives_after_its_repetition_is_not_charged(
    house: Running, network: Lossy, session: RemoteSession
) -> None:
    before = charges(house)
    session._wire._timeout = 0.5
    session._wire.close()
    network.fates = ["late"]
    told = session.sample("age > 40")
    assert len(network.keys) == 2
    key = network.keys[0]
    assert key is not None
    ask = session._wire.charge
    for _ in range(3):
        assert ask("/v1/datasets/people/ask", {"kind": "sample", "where": "age > 40"}, key)["told"] == told
    assert charges(house) == before + 1


def test_every_charged_call_is_repeatable(house: Running, network: Lossy, session: RemoteSession) -> None:
    connection = hf.connect(network.url, house.analyst)
    predictions = [0] * connection.leaderboard("board").rows
    for call in (
        lambda: session.fraction("age > 41", within=0.05),
        lambda: session.select(["age > 50", "age > 10"], epsilon=0.3),
        lambda: session.sparse_vector(0.5, 2, rho=0.01).above("age > 95"),
        lambda: connection.leaderboard("board").submit(predictions),
        lambda: connection.holdout("held").check(0.5, predictions),
    ):
        network.fates, network.keys = ["dropped", "502"], []
        call()
        assert len(network.keys) >= 3
        assert len(set(network.keys)) == len(network.keys) - 2
    board, held = connection.leaderboard("board"), connection.holdout("held")
    assert (board.looks_left, held.looks_left) == (board.queries and 2, held.queries - 1)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"kind": "nonsense"}, hf.InputError),
        ({"kind": "fraction", "where": "agee > 3"}, hf.QueryError),
        ({"kind": "fraction", "where": "age > 3", "rho": 50.0}, hf.BudgetError),
    ],
    ids=["invalid", "question", "budget"],
)
def test_a_refusal_is_not_repeated(
    body: dict[str, Any], kind: type[Exception], network: Lossy, session: RemoteSession
) -> None:
    with pytest.raises(kind):
        session._wire.charge("/v1/datasets/people/ask", body)
    assert len(network.keys) == 1


def test_it_gives_up_and_says_so(house: Running, network: Lossy, session: RemoteSession) -> None:
    before = charges(house)
    network.fates = ["dropped"] * 6  # the first is on a kept connection, which does not count
    with pytest.raises(hf.GatewayError, match=r"no reply from 127\.0\.0\.1 in 5 tries") as gave_up:
        session.fraction("age > 42", within=0.05)
    assert (gave_up.value.code, gave_up.value.status) == ("unreachable", None)
    assert session.fraction("age > 42", within=0.05).repeated
    assert charges(house) == before + 1
    network.fates = ["502"] * 5
    with pytest.raises(hf.GatewayError, match="status 502") as page:
        session.fraction("age > 43", within=0.05)
    assert page.value.status == 502


def test_a_connection_is_kept(network: Lossy, session: RemoteSession) -> None:
    before = network.connections
    for _ in range(20):
        session.estimate.fraction("age > 44", within=0.05)
    assert network.connections <= before + 1
    session._wire.close()
    session.estimate.fraction("age > 44", within=0.05)
    assert network.connections <= before + 2


def test_a_kept_connection_that_was_closed_is_no_lost_try(network: Lossy, session: RemoteSession) -> None:
    session.estimate.fraction("age > 44", within=0.05)
    session._wire._retries = 0
    network.fates = ["refused"]
    session.estimate.fraction("age > 45", within=0.05)
    network.fates = ["refused", "refused"]
    with pytest.raises(hf.GatewayError):
        session.estimate.fraction("age > 46", within=0.05)


def test_a_connection_is_given_up_with_the_call_that_was_interrupted(
    house: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(connection: HTTPConnection) -> NoReturn:
        raise KeyboardInterrupt

    with hf.connect(house.url, house.analyst) as connection:
        session = connection.session()
        with monkeypatch.context() as patch:
            patch.setattr(HTTPConnection, "getresponse", interrupt)
            with pytest.raises(KeyboardInterrupt):
                session.spent
        assert not session._wire._idle
        assert session.limit > 0


def test_a_reply_that_was_left_would_be_taken_for_the_next(house: Running, session: RemoteSession) -> None:
    """Why that matters: on a connection that is kept with a reply on its way, the next call reads that reply."""
    connection = session._wire._connection()
    assert connection.sock is not None
    asked = f"GET /v1/me HTTP/1.1\r\nHost: there\r\nAuthorization: Bearer {house.analyst}\r\n\r\n"
    connection.sock.sendall(asked.encode())
    session._wire._idle.append(connection)
    assert session._account()["name"] == "ann"
    session._wire.close()


def test_threads_share_a_session(house: Running) -> None:
    """Each thread gets the answer to its own question."""
    with hf.connect(house.url, house.analyst) as connection:
        session = connection.session()
        start = threading.Barrier(8)

        def ask(age: int) -> str:
            start.wait(30)
            return session.fraction(f"age >= {age}", within=0.1).question

        with ThreadPoolExecutor(8) as pool:
            questions = list(pool.map(ask, range(10, 18)))
        assert questions == [f"fraction where age >= {age}" for age in range(10, 18)]
        assert 1 <= len(session._wire._idle) <= 8


def test_a_forked_process_opens_its_own_connection(house: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    with hf.connect(house.url, house.analyst) as connection:
        kept = connection._wire._idle[-1]
        assert connection._wire._connection() is kept
        connection._wire._idle.append(kept)
        process = os.getpid()
        monkeypatch.setattr(os, "getpid", lambda: process + 1)
        assert connection._wire._connection() is not kept


def test_pauses_grow_and_differ() -> None:
    pauses = [[wire.pause(tries) for _ in range(50)] for tries in (1, 2, 3, 20)]
    assert all(len(set(group)) > 10 for group in pauses)
    assert max(pauses[0]) <= 0.1 < max(pauses[2]) <= 0.4
    assert 5 <= min(pauses[3]) <= max(pauses[3]) <= 10


def test_the_owner_of_a_connection_may_close_it(house: Running) -> None:
    connection = hf.connect(house.url, house.analyst)
    assert isinstance(connection, Connection)
    connection.close()
    assert not connection._wire._idle
    assert connection.me["name"] == "ann" and connection.session().name


TOKEN = "hf_0123456789ab_" + "c" * 64


def certificate(folder: Path) -> dict[str, str]:
    """A key and a certificate for 127.0.0.1 that it signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    place = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(place, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    (folder / "certificate.pem").write_bytes(signed.public_bytes(pem))
    return {"ssl_keyfile": str(folder / "key.pem"), "ssl_certfile": str(folder / "certificate.pem")}


def test_a_certificate_is_checked_once_and_before_the_token_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = FastAPI()
    told: list[str] = []
    tries: list[str] = []

    @app.get("/v1/me")
    def me(request: Request) -> dict[str, str]:
        told.append(request.headers["Authorization"])
        return {"name": "ann"}

    honest = Wire._try

    def counted(self: Wire, method: str, path: str, body: bytes | None, key: str | None) -> Reply:
        tries.append(path)
        return honest(self, method, path, body, key)

    monkeypatch.setattr(Wire, "_try", counted)
    files = certificate(tmp_path)
    with serving(app, **files) as url:
        with pytest.raises(hf.GatewayError, match="not to be trusted") as refused:
            hf.connect(url, TOKEN)
        assert refused.value.code == "unreachable" and not told and len(tries) == 1
        monkeypatch.setenv("SSL_CERT_FILE", files["ssl_certfile"])
        with hf.connect(url, TOKEN) as connection:
            assert connection.me == {"name": "ann"}
        assert told == [f"Bearer {TOKEN}"]


def test_a_redirection_is_not_followed() -> None:
    """The token would go with it."""
    app = FastAPI()
    followed: list[str] = []

    @app.get("/v1/me")
    def me() -> RedirectResponse:
        return RedirectResponse("/elsewhere")

    @app.get("/elsewhere")
    def elsewhere() -> None:
        followed.append("/elsewhere")

    with serving(app) as url:
        with pytest.raises(hf.GatewayError) as refused:
            hf.connect(url, TOKEN)
        assert refused.value.status == 307
        assert not followed
        with urlopen(f"{url}/v1/me"):  # others would follow
            assert followed
