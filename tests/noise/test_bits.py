"""The sources of bits: what they promise, and what they refuse."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from oracles import statistics

import holdfast.noise
from holdfast.errors import InputError
from holdfast.noise import bits as bits_module
from holdfast.noise.bits import Bits, ReplayedBits, SystemBits, system_bits


def test_words_look_uniform() -> None:
    octets = system_bits().words(100_000).view(np.uint8)
    assert statistics.uniform(np.bincount(octets, minlength=256)) > statistics.FALSE_ALARM
    dull = np.minimum(octets, 254)
    assert statistics.uniform(np.bincount(dull, minlength=256)) < statistics.FALSE_ALARM


def test_sources_and_calls_do_not_repeat() -> None:
    sources: list[Bits] = [SystemBits(), SystemBits(), system_bits(), ReplayedBits(1), ReplayedBits(2)]
    seen = [w for s in sources for _ in range(3) for w in s.words(1000).tolist()]
    seen += [s.below(1 << 64) for s in sources for _ in range(1000)]
    assert len(set(seen)) == len(seen)  # fails by accident with probability below 1e-10


def test_the_key_is_replaced_by_fresh_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    keys: list[bytes] = []
    keystream = bits_module._keystream
    monkeypatch.setattr(bits_module, "_keystream", lambda key: keys.append(key) or keystream(key))
    monkeypatch.setattr(bits_module, "_BYTES_PER_KEY", 1 << 17)
    source = SystemBits()
    drawn = np.concatenate([source.words(1 << 13) for _ in range(8)])
    assert len(keys) == 4  # 512 KiB at 128 KiB a key
    assert len(set(keys)) == 4
    assert np.unique(drawn).size == drawn.size


def test_a_source_that_keeps_its_key_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bits_module.os, "urandom", lambda count: bytes(count))
    monkeypatch.setattr(bits_module, "_BYTES_PER_KEY", 1 << 17)
    drawn = SystemBits().words(1 << 16)
    assert np.unique(drawn).size < drawn.size


def test_the_stream_is_aes_in_counter_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known answer: AES-256 of a zero block under a zero key (FIPS 197 test vectors, NIST AESAVS)."""
    monkeypatch.setattr(bits_module.os, "urandom", lambda count: bytes(count))
    assert SystemBits().words(2).tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_a_seed_replays_and_another_does_not() -> None:
    def transcript(source: Bits) -> list[object]:
        return [
            source.below(10**30),
            source.words(3).tolist(),
            source.chunks(5, 11).tolist(),
            source.integers_below(1000, 5).tolist(),
        ]

    assert transcript(ReplayedBits(12)) == transcript(ReplayedBits(12))
    assert transcript(ReplayedBits(12)) != transcript(ReplayedBits(13))


def test_a_list_is_followed_and_must_fit() -> None:
    source = ReplayedBits(choices=[3, 1, 2, 2**63, 0])
    assert source.below(4) == 3
    assert source.chunks(2, 2).tolist() == [1, 2]
    assert source.words(1).tolist() == [2**63]
    assert source.integers_below(1, 1).tolist() == [0]
    with pytest.raises(InputError, match="longer"):
        source.below(2)
    with pytest.raises(InputError, match="does not fit"):
        ReplayedBits(choices=[4]).below(4)
    with pytest.raises(InputError, match="exactly one"):
        ReplayedBits()
    with pytest.raises(InputError, match="exactly one"):
        ReplayedBits(1, choices=[1])
    for seed in (-1, 1.0, True):
        with pytest.raises(InputError, match="seed"):
            ReplayedBits(seed)  # type: ignore[arg-type]


def test_production_refuses_predictable_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ENV", "production")
    with pytest.raises(InputError, match="HOLDFAST_ENV=production"):
        ReplayedBits(1)
    with pytest.raises(InputError, match="HOLDFAST_ENV=production"):
        ReplayedBits(choices=[1])
    assert system_bits().below(1) == 0
    monkeypatch.setenv("HOLDFAST_ENV", "test")
    assert ReplayedBits(1).below(1) == 0


BANNED = {"random", "secrets", "uuid", "time"}


def foreign_randomness(source: str) -> list[str]:
    """Where a module takes randomness from anywhere but `bits`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                found += [n.name for n in names if BANNED & set(n.name.split("."))]
            case ast.ImportFrom(module=module, names=names):
                path = {*(module or "").split("."), *(n.name for n in names)}
                found += [module or ""] if BANNED & path else []
            case ast.Attribute(attr="random" | "urandom" | "getrandom" | "default_rng" as attr):
                found.append(attr)
    return found


def test_randomness_enters_only_through_bits() -> None:
    folder = Path(holdfast.noise.__file__).parent
    modules = {path.name: foreign_randomness(path.read_text()) for path in folder.glob("*.py")}
    assert modules.pop("bits.py") == ["urandom"]
    assert modules
    assert not any(modules.values()), modules
    for mutant in (
        "import random",
        "from numpy import random",
        "import numpy as np\nnp.random.laplace()",
        "os.urandom(8)",
    ):
        assert foreign_randomness(mutant)
