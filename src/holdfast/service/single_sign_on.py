"""Who enters the page without a token: by the word of a provider of OpenID Connect, or of a declared proxy."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.errors import InputError
from holdfast.service import auth
from holdfast.service.catalog import Catalog, Person, Taken
from holdfast.service.identities import canonical
from holdfast.service.openid import Provider, part, refused
from holdfast.service.problem import Problem
from holdfast.service.settings import Settings


class SingleSignOn:
    """Guarantee: whoever enters is a person of the catalog who may sign in, has the identity that was told of them, and
    nobody else. People whom the catalog does not know are added, as analysts without a table, only where an operator
    declared the domain of their e-mail (`Settings.join`).
    """

    def __init__(self, settings: Settings, catalog: Catalog) -> None:
        self._settings, self._catalog = settings, catalog
        self.provider = None if settings.oidc_issuer is None else Provider(settings)

    def by_provider(self, secret: str, returned: Mapping[str, str]) -> Person:
        """Whoever came back from the provider, once."""
        if self.provider is None:
            raise Problem("not-found")
        identity = self.provider.identity(secret, returned)
        if not self._catalog.identities.first_use(part("used", secret), self._catalog.now()):
            raise refused("second use")
        return self.known(identity)

    def known(self, told: str) -> Person:
        """The person whom a provider or a proxy calls so; Problem if there is none, or if they may not sign in."""
        try:
            identity = canonical(told, self._settings.identity)
        except InputError:
            raise refused("name") from None
        person = self._by(identity)
        if person is None and self._joins(identity):
            person = self._joined(identity)
        if person is None or person.scope == "metrics" or person.id in self._catalog.disabled():
            raise Problem("forbidden", f"{identity} may not enter here; ask the owner")
        return person

    def is_other(self, person: Person, told: str | None) -> bool:
        """Whether a proxy says that it is somebody else than this person."""
        if told is None:
            return False
        try:
            return self._catalog.identities.person(canonical(told, self._settings.identity)) != person.id
        except InputError:
            return True

    def token(self, person: Person, seconds: float) -> str:
        """A token for a visit that begins now. Its secret is told to nobody, and it ends as any token of theirs."""
        days = seconds / 86_400
        return auth.issue(self._catalog, person.id, label="single sign-on", days=days, by=person.id)

    def _by(self, identity: str) -> Person | None:
        key = self._catalog.identities.person(identity)
        return None if key is None else self._catalog.person(key)

    def _joins(self, identity: str) -> bool:
        name, at, domain = identity.rpartition("@")
        return bool(name and at) and domain in {each.lower() for each in self._settings.join}

    def _joined(self, identity: str) -> Person | None:
        try:
            return self._catalog.add_person(identity[:100], "analyst", identity=identity)
        except Taken:  # somebody has that name, or came in by another worker at the same moment
            return self._by(identity)
