"""A provider of OpenID Connect: where a browser is sent to, and who comes back (authorization code with PKCE)."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Any

from holdfast.errors import InputError
from holdfast.service.auth import digest
from holdfast.service.logs import note, note_failure
from holdfast.service.problem import Problem
from holdfast.service.settings import Settings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that only the provider can make: neither none nor a secret that both have."""
LEEWAY, OLDEST = 60.0, 600.0
"""By how many seconds clocks may differ, and how old an identity token may be."""
_KEPT_SECONDS, _AGAIN_SECONDS, _TIMEOUT = 3600.0, 60.0, 10.0
_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class Due:
    """What an identity token must say."""

    issuer: str
    client: str
    nonce: str
    moment: float


def _audience(said: Mapping[str, Any], due: Due) -> bool:
    names = said.get("aud")
    return names == due.client or (isinstance(names, list) and due.client in names)


def _party(said: Mapping[str, Any], due: Due) -> bool:
    several = isinstance(said.get("aud"), list) and len(said["aud"]) > 1
    return said.get("azp") == due.client or ("azp" not in said and not several)


def _expiry(said: Mapping[str, Any], due: Due) -> bool:
    end = said.get("exp")
    return isinstance(end, int | float) and due.moment < end + LEEWAY


def _age(said: Mapping[str, Any], due: Due) -> bool:
    made = said.get("iat")
    return isinstance(made, int | float) and made - LEEWAY <= due.moment <= made + OLDEST + LEEWAY


def _nonce(said: Mapping[str, Any], due: Due) -> bool:
    return hmac.compare_digest(str(said.get("nonce")).encode(), due.nonce.encode())


CHECKS: dict[str, Callable[[Mapping[str, Any], Due], bool]] = {
    "issuer": lambda said, due: said.get("iss") == due.issuer,
    "audience": _audience,
    "party": _party,
    "expiry": _expiry,
    "age": _age,
    "nonce": _nonce,
}
"""What is looked at in an identity token whose signature is right (OpenID Connect Core 1.0, section 3.1.3.7)."""


class Provider:
    """The provider of the settings.

    Guarantee: `identity` gives what the provider says of whoever is behind this very browser: `secret` is the browser's
    (state, nonce and PKCE verifier are digests of it, so that neither an answer made for another browser nor a code
    taken from one counts), the identity token is signed by a key that the provider publishes, is meant for this
    gateway and is new; an e-mail counts only if the provider says that it looked. Nobody waits for a silent provider
    longer than some seconds, and at most four at once.
    """

    def __init__(self, settings: Settings) -> None:
        try:
            import httpx2  # noqa: F401
            from authlib.integrations import httpx_client
        except ImportError:
            raise InputError(
                "expected authlib for single sign-on, got none; `pip install 'holdfast[oidc]'`"
            ) from None
        self._client, self._settings = httpx_client.OAuth2Client, settings
        self.issuer, self._return = (
            settings.oidc_issuer or "",
            f"{(settings.public_url or '').rstrip('/')}{RETURN}",
        )
        self._room, self._lock = BoundedSemaphore(_AT_ONCE), Lock()
        self._document: dict[str, Any] = {}
        self._keys: Any = None
        self._looked = -_KEPT_SECONDS

    def address(self, secret: str) -> str:
        """Where to send the browser that holds this secret."""
        with self._calling() as client:
            place = self._found(client)["authorization_endpoint"]
            verifier, nonce = part("verifier", secret), part("nonce", secret)
            state = part("state", secret)
            url, _ = client.create_authorization_url(place, state=state, code_verifier=verifier, nonce=nonce)
        return str(url)

    def identity(self, secret: str, returned: Mapping[str, str]) -> str:
        """Who came back with these parameters; Problem if that is not proven."""
        if not hmac.compare_digest(returned.get("state", "").encode(), part("state", secret).encode()):
            raise refused("state")
        if returned.get("iss", self.issuer) != self.issuer:
            raise refused("issuer of the answer")
        if "code" not in returned:
            raise refused("code")
        with self._calling() as client:
            place = self._found(client)["token_endpoint"]
            told = client.fetch_token(
                place,
                grant_type="authorization_code",
                code=returned["code"],
                code_verifier=part("verifier", secret),
            )
            said = self._claims(client, str(told.get("id_token", "")))
        due = Due(self.issuer, self._settings.oidc_client or "", part("nonce", secret), time.time())
        for name, holds in CHECKS.items():
            if not holds(said, due):
                raise refused(name)
        return self._named(said)

    def _named(self, said: Mapping[str, Any]) -> str:
        if self._settings.identity == "email":
            if said.get("email_verified") is not True:
                raise refused("e-mail that the provider looked at")
            name = said.get("email")
        else:
            name = said.get("sub")
        if not isinstance(name, str) or not name:
            raise refused("name")
        return name

    def _claims(self, client: Any, token: str) -> dict[str, Any]:
        """What a token says that one of the provider's keys has signed; keys that are not known are looked for once."""
        from joserfc import jwt
        from joserfc.errors import InvalidKeyIdError, JoseError

        try:
            try:
                found = jwt.decode(token, self._keys, algorithms=list(ALGORITHMS))
            except InvalidKeyIdError:
                self._look(client, _AGAIN_SECONDS)
                found = jwt.decode(token, self._keys, algorithms=list(ALGORITHMS))
        except (JoseError, ValueError) as error:
            raise refused("signature") from error
        return dict(found.claims)

    def _found(self, client: Any) -> dict[str, Any]:
        self._look(client, _KEPT_SECONDS)
        return self._document

    def _look(self, client: Any, kept: float) -> None:
        """Read where the provider is asked, and its keys, unless that is newer than so many seconds."""
        from joserfc.jwk import KeySet

        with self._lock:
            if time.monotonic() - self._looked < kept:
                return
            document = _json(client, f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
            if document.get("issuer") != self.issuer:
                raise refused("issuer of the document")
            keys = _json(client, str(document["jwks_uri"]))
            self._document, self._keys = document, KeySet.import_key_set(keys)
            self._looked = time.monotonic()

    @contextmanager
    def _calling(self) -> Iterator[Any]:
        """A client of the provider; whatever fails there is `unavailable` here, with no word of it."""
        from authlib.common.errors import AuthlibBaseError
        from httpx2 import HTTPError
        from joserfc.errors import JoseError

        if not self._room.acquire(blocking=False):
            raise Problem("unavailable", "too many sign in at this moment; try again")
        try:
            with self._client(
                self._settings.oidc_client, self._settings.oidc_secret, scope="openid email",
                redirect_uri=self._return, code_challenge_method="S256", timeout=_TIMEOUT, trust_env=False,
                token_endpoint_auth_method="client_secret_basic" if self._settings.oidc_secret else "none",
            ) as client:  # fmt: skip
                yield client
        except AuthlibBaseError as error:  # the provider refused the code
            raise refused("code") from error
        except (HTTPError, JoseError, ValueError, KeyError) as error:
            note_failure(error, "sign-in")
            raise Problem(
                "unavailable", "the provider cannot be asked now; try again, or use a token"
            ) from None
        finally:
            self._room.release()


RETURN = "/sign-in/return"
"""Where the provider sends browsers back to, below the gateway's address."""


def part(name: str, secret: str) -> str:
    """What a signing-in shows of its secret: each part tells nothing of the others."""
    return digest(f"{name} {secret}")


def refused(what: str) -> Problem:
    """A signing-in that is not proven. The owner is told by the log what was wrong; whoever tried is not."""
    note("sign-in refused", wrong=what)
    return Problem("forbidden", "the sign-in could not be proven; begin again on the page for signing in")


def _json(client: Any, url: str) -> dict[str, Any]:
    reply = client.request("GET", url, withhold_token=True)
    reply.raise_for_status()
    found = reply.json()
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found
