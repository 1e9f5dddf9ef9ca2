"""`holdfast gateway …` does what owners do, and each is a fact that an auditor reads."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner
from gateway import people

from holdfast.cli import main
from service.site import Site, site

QUESTION = {"kind": "fraction", "where": "age > 40", "rho": 1e-4}


def run(here: Site, *command: str) -> Any:
    settings = here.started.settings
    place = ["gateway", "--folder", str(settings.folder), "--anchors", str(settings.anchors)]
    return CliRunner().invoke(main, [*place, *command])


def test_the_whole_life_of_an_owner_at_the_machine() -> None:
    with site({"people": people(1_000), "others": people(1_001)}) as here:
        here.started.register_board("board")
        bob = here.started.somebody("bob")
        assert here.ask(QUESTION, token=bob).status_code == 200
        assert run(here, "cap", "people", "--epsilon", "40", "--delta", "1e-6").exit_code == 0
        assert here.call("GET", "/datasets/people").json()["budget"]["epsilon"] == 40.0, "the gateway runs on"
        assert run(here, "withdraw", "people", "bob").exit_code == 0
        assert here.ask(QUESTION, token=bob).status_code == 404
        assert here.ask(QUESTION, table="others", token=bob).status_code == 200
        assert run(here, "end-tokens", "bob").exit_code == 0
        assert here.call("GET", "/me", token=bob).status_code == 401
        assert run(here, "disable", "bob").exit_code == 0
        assert run(here, "retire", "others").exit_code == 0
        assert here.ask(QUESTION, table="others").status_code == 404
        assert run(here, "retire", "board", "--board").exit_code == 0
        kinds = [deed.kind for deed in here.started.gateway.catalog.deeds.all()]
        done = ["cap set", "withdrawn", "tokens ended", "person disabled", "table retired", "board retired"]
        assert kinds[-6:] == done


def test_what_cannot_be_done_is_told_in_words() -> None:
    with site({"people": people(1_000)}) as here:
        before = len(list(here.started.gateway.catalog.deeds.all()))
        for command in (
            ("withdraw", "people", "nobody"), ("retire", "nowhere"), ("disable", "owner"), ("end-tokens", "nobody"),
            ("cap", "people", "--epsilon", "1"), ("cap", "people"), ("retire", "people", "--holdout"),
        ):  # fmt: skip
            result = run(here, *command)
            assert result.exit_code == 1 and result.output.startswith("Error: "), (command, result.output)
        assert len(list(here.started.gateway.catalog.deeds.all())) == before
