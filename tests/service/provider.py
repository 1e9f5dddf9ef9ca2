"""A small provider of OpenID Connect on this machine, which can be told to lie."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse
from gateway import serving
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

CLIENT, SECRET = "holdfast", "a secret of the client"


@dataclass
class Provider:
    """`user` signs in without being asked. `twist` changes what a token says before it is signed, `sign` how."""

    issuer: str = ""
    user: dict[str, Any] = field(
        default_factory=lambda: {"sub": "1", "email": "ann@x.org", "email_verified": True}
    )
    twist: Callable[[dict[str, Any]], None] = lambda said: None
    sign: Callable[[Provider, dict[str, Any]], str] = lambda self, said: self.signed(said)
    asks: bool = False
    """Whether the user has to press something."""
    lax: bool = False
    """Whether a code counts more than once, and whoever brings it."""
    named: str = ""
    """What the document calls the issuer, if it lies."""
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "one", "use": "sig"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def signed(self, said: dict[str, Any]) -> str:
        return str(jwt.encode({"alg": "RS256", "kid": self.key.kid}, said, self.key))

    def app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/.well-known/openid-configuration")
        def document() -> dict[str, Any]:
            self.asked.append("document")
            ends = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            return {"issuer": self.named or self.issuer} | {
                name: self.issuer + path for name, path in ends.items()
            }

        @app.get("/keys")
        def keys() -> dict[str, Any]:
            return {"keys": [self.key.as_dict(private=False)]}

        @app.get("/authorize")
        def authorize(request: Request) -> Response:
            sent = dict(request.query_params)
            assert (sent["client_id"], sent["response_type"]) == (CLIENT, "code")
            assert sent["code_challenge_method"] == "S256" and "openid" in sent["scope"].split()
            code = secrets.token_urlsafe(16)
            self.codes[code] = sent
            back = urlencode({"code": code, "state": sent["state"], "iss": self.issuer})
            place = f"{sent['redirect_uri']}?{back}"
            shown = f'<!doctype html><title>x</title><a href="{html.escape(place)}">Yes, it is me</a>'
            return HTMLResponse(shown) if self.asks else RedirectResponse(place, 303)

        @app.post("/token")
        async def token(request: Request) -> JSONResponse:
            self.asked.append("token")
            async with request.form() as form:
                sent = {name: str(value) for name, value in form.items()}
            known = self.codes.get(sent["code"]) if self.lax else self.codes.pop(sent["code"], None)
            basic = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
            fine = (
                known is not None
                and known["redirect_uri"] == sent["redirect_uri"]
                and (self.lax or (challenge(sent["code_verifier"]) == known["code_challenge"]))
            )
            if not fine or known is None or request.headers.get("authorization") != f"Basic {basic}":
                return JSONResponse({"error": "invalid_grant"}, 400)
            said = self.user | {"iss": self.issuer, "aud": CLIENT, "nonce": known["nonce"]}
            said |= {"iat": int(time.time()), "exp": int(time.time()) + 300}
            self.twist(said)
            return JSONResponse(
                {"access_token": "x", "token_type": "Bearer", "id_token": self.sign(self, said)}
            )

        return app


def challenge(verifier: str) -> str:
    return _text(hashlib.sha256(verifier.encode()).digest())


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def unsigned(provider: Provider, said: dict[str, Any]) -> str:
    """alg none."""
    return ".".join(_text(json.dumps(part).encode()) for part in ({"alg": "none", "typ": "JWT"}, said)) + "."


def by_public_key(provider: Provider, said: dict[str, Any]) -> str:
    """HS256, with the published key as the secret that both have."""
    head = _text(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    text = f"{head}.{_text(json.dumps(said).encode())}"
    return f"{text}.{_text(hmac.digest(provider.key.as_pem(private=False), text.encode(), 'sha256'))}"


def by_other_key(provider: Provider, said: dict[str, Any]) -> str:
    """A key of one's own, under the provider's name for its key."""
    return str(jwt.encode({"alg": "ES256", "kid": "one"}, said, ECKey.generate_key("P-256")))


@contextmanager
def provided(**how: Any) -> Iterator[Provider]:
    """A provider that runs."""
    provider = Provider(**how)
    with serving(provider.app(), http="h11") as provider.issuer:
        yield provider


def settings_for(provider: Provider, **more: Any) -> dict[str, Any]:
    """How a gateway at http://localhost is told of the provider."""
    whole = {"oidc_issuer": provider.issuer, "oidc_client": CLIENT, "oidc_secret": SECRET}
    return whole | {"public_url": "http://localhost"} | more
