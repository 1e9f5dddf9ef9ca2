"""Certificates are checked: a token is not told to whoever answers."""

from __future__ import annotations

import datetime
import ipaddress
from pathlib import Path
from urllib.request import urlopen

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from gateway import serving

import holdfast as hf
from holdfast.client.wire import Reply, Wire

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
