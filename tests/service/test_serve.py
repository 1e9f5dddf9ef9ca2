"""`holdfast serve` as an operator meets it: real processes, real signals, real databases."""

from __future__ import annotations

import datetime
import itertools
import json
import re
import shlex
import shutil
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import polars
import pytest

import holdfast as hf
from holdfast.ledger import open_ledger, verify
from service.process import Server, ask, database_of, refused, register, served, table_in, token_of


@pytest.fixture(autouse=True)
def _around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Anchors that all processes of a test share; a client that is turned away at a stop is no error."""
    monkeypatch.setenv("HOLDFAST_ANCHORS", str(tmp_path / "anchors"))
    monkeypatch.setattr(threading, "excepthook", lambda _: None)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> dict[str, str]:
    return database_of(request.param)


def test_one_budget_for_server_notebook_and_restart(tmp_path: Path, database: dict[str, str]) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    before = hf.open(store).session(rho=0.1, name="notebook", target="table")
    earlier = before.fraction("age > 50", rho=1e-4)
    with served(folder, "--workers", "2", **database) as server:
        owner = token_of(server)
        ann = register(server, owner)
        status, first = ask(server, ann, "age > 40")
        assert status == 200
        address = database.get("HOLDFAST_DATABASE")
        beside = hf.open(store, ledger=None if address is None else f"{address}#people")
        assert beside.ledger.totals().entries == 2
        beside.session(rho=0.1, name="notebook", target="table").fraction("age > 60", rho=1e-4)
        _, budget = server.call("GET", "/v1/datasets/people/budget", token=ann)
        assert budget["table"]["answers"] == 3
        assert budget["answers"] == 1
        beside.close()
        for _ in range(8):  # both workers give the stored answer
            assert ask(server, ann, "age > 40")[1]["answers"] == first["answers"]
    with served(folder, **database) as server:
        assert ask(server, ann, "age > 40")[1]["answers"] == first["answers"]
        assert "told only now" not in server.stop()
    ledger = open_ledger(address + "#people" if address else store)
    assert verify(ledger).totals.entries == 3
    ledger.close()
    assert earlier.value == pytest.approx(0.5, abs=0.1)


def test_a_store_whose_ledger_moved_refuses_charges_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder, **database_of("postgres")) as server:
        register(server, token_of(server))
    table = hf.open(store)
    with pytest.raises(hf.LedgerError, match="moved"):
        table.session(rho=0.1, name="notebook", target="table").fraction("age > 60", rho=1e-4)


def test_what_was_charged_is_answered_before_it_stops(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    table_in(folder, 3_000_000)
    with served(folder) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 1")[0] == 200  # the rows are open now
        replies: list[tuple[int, Any]] = []
        threads = [
            threading.Thread(
                target=lambda k=k: replies.append(ask(server, ann, f"age > {k} AND income > {k}"))
            )
            for k in range(2, 18)
        ]
        for thread in threads:
            thread.start()
        ledger = open_ledger(folder / "data/people.hf")
        while ledger.totals().entries < 4:
            time.sleep(0.001)
        server.stop()
        for thread in threads:
            thread.join()
    entries = list(ledger.entries())
    assert len(entries) >= 4
    assert all(entry.answer is not None for entry in entries)
    assert sum(status == 200 for status, _ in replies) >= len(entries) - 1
    ledger.close()


def test_a_restored_ledger_starts_only_when_it_is_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 40")[0] == 200
    shutil.copytree(store, tmp_path / "yesterday")
    with served(folder) as server:
        assert ask(server, ann, "age > 41")[0] == 200
    shutil.rmtree(store)
    shutil.copytree(tmp_path / "yesterday", store)
    assert "older copy" in refused(folder)
    said = subprocess.run(
        [sys.executable, "-m", "holdfast", "ledger", "acknowledge", str(store), "--i-know-answers-were-lost"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    with served(folder) as server:
        _, budget = server.call("GET", "/v1/datasets/people/budget", token=ann)
        assert budget["table"]["spent"]["rho"] >= 2e-4  # what the lost answer cost is not forgotten


def test_another_ledger_in_its_place_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder) as server:
        register(server, token_of(server))
    for file in store.glob("ledger.sqlite*"):
        file.unlink()
    assert "not the one that was registered" in refused(folder)


def _begun(folder: Path) -> subprocess.Popen[str]:
    """A gateway to which every chain is a long one."""
    program = (
        "from holdfast.service import serve; serve.WALKED_FIRST = 0; from holdfast.cli import main; main()"
    )
    command = [sys.executable, "-c", program, "serve", "--folder", str(folder), "--port", "0"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _walks(process: int) -> bool:
    """Whether a process has one of its own that `multiprocessing` began."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return any(b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)


def test_a_long_chain_is_walked_after_the_start_and_a_changed_one_ends_the_gateway(tmp_path: Path) -> None:
    folder = tmp_path / "server"
    store = table_in(folder)
    with served(folder) as server:
        ann = register(server, token_of(server))
        assert ask(server, ann, "age > 40")[0] == 200
    sound = _begun(folder)
    assert sound.stdout is not None
    assert "Holdfast gateway at" in sound.stdout.readline()
    assert "the chains of people are walked" in sound.stdout.readline()
    for there in (True, False):  # the walk begins, and ends
        while _walks(sound.pid) != there:
            time.sleep(0.02)
    assert sound.poll() is None
    sound.terminate()
    assert "changed" not in sound.communicate()[0]
    with closing(sqlite3.connect(store / "ledger.sqlite")) as file:
        file.execute("DROP TRIGGER entries_stay")
        file.execute("UPDATE entries SET session_units = 0")
        file.commit()
    said = refused(folder)
    assert "changed" in said, "a short chain is walked first"
    changed = _begun(folder)
    told = changed.communicate(timeout=120)[0]
    assert "Holdfast gateway at" in told and said.splitlines()[-1] in told
    assert changed.returncode != 0


def test_it_refuses_seeds_taken_ports_and_bad_settings(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for flags, environment, words in (
            ((), {"HOLDFAST_SEED": "1"}, "seed"),
            (("--port", port), {}, "--port"),
            ((), {"HOLDFAST_WORKERS": "many"}, "HOLDFAST_WORKERS"),
            (("--database", "mysql://x"), {}, "postgresql://"),
        ):
            said = refused(tmp_path / "server", *flags, **environment)
            assert words in said
            assert "Traceback" not in said


DOCS = Path(__file__).parents[2] / "docs"


def _commands(page: str) -> list[list[str]]:
    """The shell commands of the smallest gateway, in words, less those that start it."""
    section = (DOCS / page).read_text().split("## Settings")[0]
    blocks = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    text = re.sub(r"(?m)\s#.*$", "", "".join(blocks).replace("\\\n", " "))
    words = shlex.shlex(text, posix=True, punctuation_chars="\n")
    words.whitespace, words.whitespace_split, words.commenters = " ", True, ""
    split = [list(group) for ends, group in itertools.groupby(words, lambda word: word.isspace()) if not ends]
    return [command for command in split if command[:2] not in (["pip", "install"], ["holdfast", "serve"])]


def _pages(server: Server, token: str) -> dict[str, int]:
    """Every page that an owner can reach by links, with its status."""
    sign_in = urlencode({"token": token})
    form = {"Origin": f"http://127.0.0.1:{server.port}", "Content-Type": "application/x-www-form-urlencoded"}
    _, headers, _ = server.fetch("POST", "/sign-in", sign_in, form)
    seen, waiting = dict[str, int](), ["/tables"]
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen[path], _, text = server.fetch(
                "GET", path, None, {"Cookie": headers["set-cookie"].split(";")[0]}
            )
            waiting += re.findall(r'href="(/(?!static)[^"#]*)', text)
    return seen


def test_the_walk_through_of_the_docs_leaves_no_page_broken(tmp_path: Path) -> None:
    """docs/deploy.md, word by word: its curl lines as calls, its other lines as processes; then every page."""
    here, count = tmp_path / "here", 3_000
    here.mkdir()
    with served(here / "holdfast-server") as server:
        owner = token_of(server)
        orders = {
            "items": [1 + n % 9 for n in range(count)], "price": [n % 500 / 2 for n in range(count)],
            "channel": [("phone", "shop", "web")[n % 3] for n in range(count)],
            "day": [datetime.date(2024, 1, 1) + datetime.timedelta(days=n % 700) for n in range(count)],
        }  # fmt: skip
        polars.DataFrame(orders).write_parquet(here / "orders.parquet")
        polars.DataFrame(orders).write_csv(here / "orders.csv")
        statuses, ann = [], ""
        for command in _commands("deploy.md"):
            words = [word.replace("$OWNER", owner).replace("ANN_ID", ann) for word in command]
            if words[0] != "curl":
                shell = shlex.join(words).replace("'>'", ">")
                program = shell.replace("holdfast ingest", f"{sys.executable} -m holdfast ingest")
                subprocess.run(program, shell=True, check=True, cwd=here)
                continue
            body = json.loads(words[words.index("-d") + 1])
            (address,) = (word for word in words if word.startswith("localhost:8765/"))
            status, told = server.call(
                "PUT" if "PUT" in words else "POST", address.removeprefix("localhost:8765"), body, owner
            )
            statuses.append(status)
            ann = told["id"] if address.endswith("/people") else ann
        assert statuses == [201, 201, 204, 201, 201]
        found = _pages(server, owner)
        assert {"/tables/orders/analysts", "/tables/orders-csv", f"/people/{ann}", "/boards"} <= set(found)
        # The page leads on from "/" by a redirect, and to nothing that is refused or broken.
        assert {path: status for path, status in found.items() if status not in (200, 303)} == {}


def test_the_first_start_tells_a_token_and_a_lost_one_is_replaced(tmp_path: Path) -> None:
    folder, tokens = tmp_path / "server", []
    for flags in (("--demo",), ("--new-token",)):
        with served(folder, *flags) as server:
            tokens.append(token_of(server))
            assert server.call("GET", "/v1/me", token=tokens[-1])[1]["scope"] == "owner"
            status, answer = ask(server, tokens[0], "age > 40 AND smoker = 'yes'")
            assert status == 200
            assert 0 < answer["answers"][0]["value"] < 1
            assert server.call("GET", "/v1/leaderboards/digits", token=tokens[0])[1]["rows"] == 20_000
    assert len(set(tokens)) == 2
    kept = b"".join(path.read_bytes() for path in folder.glob("*") if path.is_file())
    assert kept
    assert not any(token.rsplit("_", 1)[1].encode() in kept for token in tokens)
    assert folder.stat().st_mode & 0o077 == 0
