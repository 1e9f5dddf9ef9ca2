"""Names of single sign-on on SQLite and PostgreSQL: one person's each, however many workers are asked at once."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from gateway import people

from holdfast.errors import InputError
from holdfast.service.catalog import Taken
from holdfast.service.identities import canonical
from service.at_once import DATABASES, Pair, two_gateways

MANY = 8


@pytest.fixture(scope="module", params=DATABASES)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with two_gateways(request.param, {"people": people(500)}) as made:
        yield made


def test_of_many_who_come_at_once_one_has_the_name_and_one_signing_in_is_the_first(pair: Pair) -> None:
    """The control for the second: another digest is a first use again."""
    catalog = pair.started.gateway.catalog
    everybody = [catalog.add_person(f"p{number}", "analyst").id for number in range(MANY)]

    def takes(person: str) -> bool:
        try:
            catalog.set_identity(person, "same@x.org")
        except Taken:
            return False
        return True

    with ThreadPoolExecutor(MANY) as threads:
        assert sum(threads.map(takes, everybody)) == 1
        digest = "d" * 64
        assert sum(threads.map(lambda _: catalog.identities.first_use(digest, 1e6), everybody)) == 1
    assert catalog.identities.first_use("e" * 64, 1e6)
    assert not catalog.identities.first_use(digest, 1e6 + 60)
    assert catalog.identities.person("same@x.org") in everybody


def test_a_name_can_go_on_to_somebody_else(pair: Pair) -> None:
    catalog = pair.started.gateway.catalog
    one = catalog.add_person("one", "analyst", identity="a@x.org").id
    two = catalog.add_person("two", "analyst").id
    catalog.set_identity(one, "b@x.org")
    catalog.set_identity(two, "a@x.org")
    assert (catalog.identities.of(one), catalog.identities.of(two)) == ("b@x.org", "a@x.org")
    catalog.set_identity(one, None)
    assert catalog.identities.person("b@x.org") is None


@pytest.mark.parametrize("text", ["", " ", "a\x00b", "a\nb", "x" * 256, 3, None])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        canonical(text, "email")
    assert canonical(" Ann@X.org ", "email") == "ann@x.org"
    assert canonical("Ann", "subject") == "Ann"
