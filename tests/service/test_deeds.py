"""The life of an owner: every way back is taken, is a fact in a chain, and is not undone by an older file."""

from __future__ import annotations

import json
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gateway import people

from holdfast.errors import LedgerError
from holdfast.ledger import verify
from holdfast.service.deeds import Deeds
from holdfast.service.gateway import Gateway
from service.process import database_of
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}


@pytest.fixture(params=["sqlite", "postgres"])
def here(request: pytest.FixtureRequest) -> Iterator[Site]:
    database = database_of(request.param).get("HOLDFAST_DATABASE")
    with site({"people": people(1_000)}, database=database) as made:
        yield made


def _owner(here: Site, method: str, path: str, body: object = None) -> Any:
    return here.call(method, path, body, token=here.started.owner)


def _deeds(here: Site) -> list[dict[str, Any]]:
    return [json.loads(line) for line in _owner(here, "GET", "/deeds").text.splitlines()]


def test_an_analyst_is_withdrawn_for_good(here: Site) -> None:
    ann, owner = here.started.person(here.started.analyst), here.started.person(here.started.owner)
    assert here.ask(QUESTION).status_code == 200
    path, share = f"/datasets/people/members/{ann.id}", f"/datasets/people/analysts/{ann.id}"
    assert here.call("DELETE", path).status_code == 403
    assert _owner(here, "DELETE", path).status_code == 204
    assert here.ask(QUESTION | {"where": "age > 1"}).json()["code"] == "not-found"
    assert _owner(here, "DELETE", path).status_code == 404
    again = _owner(here, "PUT", share, {"epsilon": 1.0, "delta": 1e-6})
    assert again.status_code == 422 and "for good" in again.json()["detail"]
    assert ann.id in here.ledger().ended()
    assert "sound" in str(verify(here.ledger()))
    last = _deeds(here)[-1]
    assert (last["kind"], last["fields"]["person"], last["fields"]["by"]) == ("withdrawn", ann.id, owner.id)


def test_tokens_end_and_people_are_disabled(here: Site) -> None:
    ann, owner = here.started.person(here.started.analyst), here.started.person(here.started.owner)
    other = _owner(here, "POST", f"/people/{ann.id}/tokens", {}).json()["token"]
    assert here.call("DELETE", f"/people/{owner.id}/tokens").status_code == 403
    assert here.call("DELETE", f"/people/{ann.id}/tokens", token=other).status_code == 204, "one's own"
    assert [here.call("GET", "/me", token=token).status_code for token in (here.started.analyst, other)] == [
        401
    ] * 2
    fresh = _owner(here, "POST", f"/people/{ann.id}/tokens", {}).json()["token"]
    assert here.call("GET", "/me", token=fresh).status_code == 200
    assert _owner(here, "DELETE", f"/people/{ann.id}").status_code == 204
    assert here.call("GET", "/me", token=fresh).status_code == 401
    refused = _owner(here, "POST", f"/people/{ann.id}/tokens", {})
    assert refused.status_code == 422 and "disabled" in refused.json()["detail"]
    last = _owner(here, "DELETE", f"/people/{owner.id}")
    assert last.status_code == 422 and "last owner" in last.json()["detail"]
    kinds = [deed["kind"] for deed in _deeds(here)]
    assert {"tokens ended", "person disabled", "token issued"} <= set(kinds)


def test_a_cap_is_raised_and_lowered_and_shares_stay_below_it(here: Site) -> None:
    ann = here.started.person(here.started.analyst)
    share = f"/datasets/people/analysts/{ann.id}"
    assert here.ask(QUESTION | {"rho": 0.01}).status_code == 200
    above = _owner(here, "PUT", share, {"epsilon": 31.0, "delta": 1e-6})
    assert above.status_code == 422 and "cap" in above.json()["detail"]
    raised = _owner(here, "PUT", "/datasets/people/budget", {"epsilon": 40.0, "delta": 1e-6})
    assert raised.status_code == 200 and raised.json()["budget"]["epsilon"] == 40.0
    assert _owner(here, "PUT", share, {"epsilon": 31.0, "delta": 1e-6}).status_code == 204
    spent = here.totals()
    below = _owner(here, "PUT", "/datasets/people/budget", {"epsilon": 1e-3, "delta": 1e-6})
    assert below.status_code in (402, 422) and here.totals() == spent
    assert _owner(here, "PUT", "/datasets/people/budget", {"epsilon": 1.0}).status_code == 422, (
        "other currency"
    )
    lowered = _owner(here, "PUT", "/datasets/people/budget", {"epsilon": 2.0, "delta": 1e-6})
    assert lowered.status_code == 200
    assert here.ask(QUESTION | {"where": "age > 2", "rho": 5.0, "confirm": True}).json()["code"] == "budget"
    other = Gateway(here.started.settings)  # as another worker, or the next start
    assert other.tables.dataset("people").budget["epsilon"] == 2.0
    other.check()
    other.close()


def test_tables_and_boards_are_retired(here: Site) -> None:
    here.started.register_board("board")
    path = here.started.gateway.tables.dataset("people").path
    assert here.ask(QUESTION).status_code == 200
    assert _owner(here, "DELETE", "/datasets/people").status_code == 204
    assert here.ask(QUESTION).json()["code"] == "not-found"
    assert here.call("GET", "/datasets").json() == []
    assert _owner(here, "GET", "/datasets/people").json()["retired"] is True
    assert _owner(here, "GET", "/datasets/people/ledger").status_code == 200, "auditors read on"
    again = _owner(here, "POST", "/datasets", {"id": "anew", "path": path, "budget": {"rho": 1}})
    assert again.status_code == 409, "its rows have had their budget"
    assert _owner(here, "DELETE", "/holdouts/board").status_code == 404, "it is a leaderboard"
    assert _owner(here, "DELETE", "/leaderboards/board").status_code == 204
    assert here.call("GET", "/leaderboards").json() == []
    body = {"predictions": [0] * 5_000}
    assert here.call("POST", "/leaderboards/board/submissions", body).json()["code"] == "not-found"


def revived(folder: Path, here: Site) -> bool:
    """Whether an older gateway.sqlite, put back, lets a revoked token in again."""
    older = folder / "older"
    older.mkdir()
    here.started.gateway.catalog.close()
    shutil.copy(folder / "gateway.sqlite", older)
    anew = Gateway(here.started.settings)
    key = here.started.analyst.split("_")[1]
    anew.catalog.revoke(key)
    anew.close()
    for file in folder.glob("gateway.sqlite*"):
        file.unlink()
    shutil.copy(older / "gateway.sqlite", folder / "gateway.sqlite")
    back = Gateway(here.started.settings)
    try:
        back.check()
        return back.who(here.started.analyst) is not None
    finally:
        back.close()


def test_an_older_catalog_is_refused_and_revives_no_token() -> None:
    with site({"people": people(1_000)}) as here:
        with pytest.raises(LedgerError, match="older copy"):
            revived(here.started.settings.folder, here)
        back = Gateway(here.started.settings)
        with pytest.raises(LedgerError, match="older copy"):
            back.first_owner() or back.catalog.add_person("eve", "owner")
        back.catalog.restored()
        back.check()
        assert back.who(here.started.analyst) is None and back.who(here.started.owner) is None
        assert [deed.kind for deed in back.catalog.deeds.all()][-1] == "restored"
        back.close()


def test_a_catalog_without_an_anchor_would_revive_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deeds, "_refuse_older", lambda self, mark: None)
    with site({"people": people(1_000)}) as here:
        assert revived(here.started.settings.folder, here)


def test_a_changed_deed_is_noticed() -> None:
    with site({"people": people(1_000)}) as here:
        catalog = here.started.gateway.catalog
        with catalog._db.write():
            catalog._db.rows(
                "UPDATE deeds SET body = replace(body, 'analyst', 'auditor') WHERE kind = 'person added'"
            )
        with pytest.raises(LedgerError, match="was changed at deed"):
            here.started.gateway.check()


def test_files_are_for_their_user_alone_whatever_the_folder_was(tmp_path: Path) -> None:
    with site({"people": people(1_000)}) as here:
        folder = here.started.settings.folder
        here.started.register_board("board")
        folder.chmod(0o755)
        (folder / "gateway.sqlite").chmod(0o644)
        Gateway(here.started.settings).close()
        files = [*folder.glob("*.sqlite*"), *folder.glob("boards/*"), *folder.glob("data/*/ledger.sqlite*")]
        assert len(files) >= 4
        assert {stat.S_IMODE(file.stat().st_mode) for file in files if file.is_file()} == {0o600}
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_page_has_a_control_for_each() -> None:
    """An owner takes every way back with the forms that the page shows."""
    with site({"people": people(1_000)}) as here:
        here.started.register_board("board")
        ann, page = here.started.person(here.started.analyst), here.client
        origin = {"Origin": "http://testserver"}
        page.post("/sign-in", data={"token": here.started.owner}, headers=origin)

        def press(at: str, action: str, **more: str) -> str:
            shown = page.get(at).text
            assert f'action="{action}"' in shown, (at, action)
            token = re.search(r'name="form_token" value="([0-9a-f]+)"', shown)
            assert token is not None
            reply = page.post(action, data={"form_token": token.group(1)} | more, headers=origin)
            assert reply.status_code == 200, reply.text
            return reply.text

        cap = press("/tables/people/analysts", "/tables/people/budget", cap="yes", epsilon="35", delta="1e-6")
        assert 'value="35' in cap
        assert here.call("GET", "/datasets/people").json()["budget"]["epsilon"] == 35.0
        press("/tables/people/analysts", f"/tables/people/analysts/{ann.id}/withdraw")
        assert here.ask(QUESTION).status_code == 404
        press(f"/people/{ann.id}", f"/people/{ann.id}/tokens/end")
        assert here.call("GET", "/me").status_code == 401
        assert "disabled" in press(f"/people/{ann.id}", f"/people/{ann.id}/disable")
        press("/boards/board", "/boards/board/retire")
        press("/tables/people/analysts", "/tables/people/retire")
        assert "retired" in page.get("/tables/people/analysts").text
        kinds = [deed["kind"] for deed in _deeds(here)]
        assert kinds[-6:] == [
            "cap set", "withdrawn", "tokens ended", "person disabled", "board retired", "table retired",
        ]  # fmt: skip
