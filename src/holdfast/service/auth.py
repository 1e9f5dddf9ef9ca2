"""Who is asking: tokens with a secret of which only a digest is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from holdfast.service.catalog import Catalog, Person, Token

_TOKEN = re.compile(r"\Ahf_([0-9a-f]{12})_([0-9a-f]{64})\Z")
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


def digest(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits, so that no salt and no slow hash is needed."""
    return hashlib.sha256(secret.encode()).hexdigest()


def issue(catalog: Catalog, person: str, *, label: str = "", days: float | None = None, by: str = "") -> str:
    """A new token for a person, told once; it ends after so many days."""
    key, secret, now = secrets.token_hex(6), secrets.token_hex(32), catalog.now()
    expires = None if days is None else now + days * 86_400
    catalog.add_token(Token(key, person, digest(secret), label[:100], now, expires, None), by=by)
    return f"hf_{key}_{secret}"


def token_id(text: str) -> str | None:
    """The public part of a token, by which it is revoked."""
    match = _TOKEN.match(text)
    return None if match is None else match.group(1)


def who(catalog: Catalog, text: str) -> Person | None:
    """The person whose valid token this is, or None.

    Guarantee: digests are compared in constant time, and a comparison is made for unknown tokens as well.
    """
    match = _TOKEN.match(text)
    known = None if match is None else catalog.token(match.group(1))
    secret = "" if match is None else match.group(2)
    same = hmac.compare_digest(digest(secret), _NOBODY if known is None else known[0].digest)
    if known is None or not same:
        return None
    token, person = known
    if token.revoked is not None or (token.expires is not None and catalog.now() >= token.expires):
        return None
    return person
