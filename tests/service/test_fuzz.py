"""Schemathesis reads /openapi.json and sends what it says, and what it does not: no 5xx, nothing undeclared."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok

from holdfast.service import api
from holdfast.service.gateway import Gateway
from service.site import Site, site

load_all_checks()
CHOSEN = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]
EXAMPLES = int(os.environ.get("HOLDFAST_FUZZ", "5"))
"""How many requests are made to each operation and as each role; `make evidence` sends more."""


@pytest.fixture
def here() -> Iterator[Site]:
    """A gateway for one test: schemathesis starts and stops it."""
    with site() as made:
        made.started.register_board("digits")
        made.started.register_board("held", "holdout")
        yield made


GOOD = {"where": "age > 40", "column": "age", "by": "smoker", "text": "SELECT count(*) FROM t"}
ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def aimed(case: Any, token: str) -> Any:
    """Aim at things that are there, with a token that is somebody's, where the request has a good one at all."""
    there = {"dataset": "people", "board": "digits" if "leaderboards" in case.path else "held"}
    for name, value in there.items():
        if ID.fullmatch(str((case.path_parameters or {}).get(name, ""))):
            case.path_parameters[name] = value
    if "Authorization" in (case.headers or {}):
        case.headers["Authorization"] = f"Bearer {token}"
    if isinstance(case.body, dict):
        for name, value in GOOD.items():
            if isinstance(case.body.get(name), str) and len(case.body[name]) % 2:
                case.body[name] = value
    return case


def fuzz(here: Site, token: str, examples: int) -> tuple[list[str], Counter[int]]:
    """What was wrong, and how often each status came back."""
    schema = schemathesis.openapi.from_asgi("/openapi.json", here.started.app)
    checks = [CHECKS.get_one(name) for name in CHOSEN]
    wrong: list[str] = []
    statuses: Counter[int] = Counter()
    for result in schema.get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        for generation in schemathesis.GenerationMode:

            @settings(
                max_examples=examples, derandomize=True, database=None, deadline=None,
                phases=[Phase.generate], suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            @given(case=operation.as_strategy(generation_mode=generation))
            def send(case: Any) -> None:
                before = here.totals()
                reply = aimed(case, token).call()
                statuses[reply.status_code] += 1
                if reply.status_code >= 400 and here.totals() != before:
                    wrong.append(f"{case.method} {case.path} {reply.status_code} was charged")
                if reply.status_code == 413:
                    return  # a refusal as well, which the check of wrong data does not know
                try:
                    case.validate_response(reply, checks=checks)
                except (Failure, FailureGroup) as failure:
                    causes = getattr(failure, "exceptions", [failure])
                    wrong.extend(
                        f"{case.method} {case.path} {reply.status_code}: {cause}" for cause in causes
                    )

            with suppress(Unsatisfiable):  # what takes nothing cannot be asked wrongly
                send()
    return wrong, statuses


@pytest.mark.parametrize("who", ["analyst", "owner"])
def test_nothing_that_is_sent_breaks_the_gateway(here: Site, who: str) -> None:
    wrong, statuses = fuzz(here, getattr(here.started, who), EXAMPLES)
    assert not wrong, wrong[0]
    assert statuses[200] and statuses[422], "the requests were neither all good nor all bad"


def test_a_route_that_breaks_is_caught(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twins: a mistake in one route, and a reply that is not what the document says."""

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Gateway, "people", broken)
    monkeypatch.setattr(api, "_person", lambda person: {"id": 7})
    wrong, statuses = fuzz(here, here.started.owner, 1)
    assert statuses[500]
    assert [text for text in wrong if text.startswith("GET /v1/people 500")]
    assert [text for text in wrong if text.startswith("GET /v1/me ")]


def test_the_document_is_openapi_3_1(here: Site) -> None:
    document = here.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    here_schema = schemathesis.openapi.from_dict(document)
    here_schema.validate()
    assert document["components"]["securitySchemes"]["HTTPBearer"]["scheme"] == "bearer"
    guarded = {path for path, way in document["paths"].items() for one in way.values() if "security" in one}
    assert set(document["paths"]) - guarded == {"/v1/health", "/v1/ready"}
    broken = json.loads(json.dumps(document)) | {"paths": {"/x": {"get": {"responses": 7}}}}
    with pytest.raises(Exception, match=r"(?s)."):
        schemathesis.openapi.from_dict(broken).validate()
