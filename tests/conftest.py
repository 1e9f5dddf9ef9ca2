"""Every test run is the same run: fixed examples, and no library takes more threads than the machine has cores."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator

if "HOLDFAST_ANCHORS" not in os.environ:  # the workers of one run share it
    os.environ["HOLDFAST_ANCHORS"] = tempfile.mkdtemp(prefix="holdfast-anchors-")
    atexit.register(shutil.rmtree, os.environ["HOLDFAST_ANCHORS"], ignore_errors=True)

# On CI pytest writes out every difference in full, also those of the twins that fail on purpose: minutes for nothing.
os.environ.pop("CI", None)

for _setting in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(_setting, "1")

import pytest  # noqa: E402  (the environment must be set first)
from hypothesis import settings  # noqa: E402
from oracles import repeated_noise  # noqa: E402

from holdfast.session import opening  # noqa: E402

# `HYPOTHESIS=explore pytest` draws fresh examples; `make test` repeats the same ones on every machine.
settings.register_profile("repeat", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("explore", deadline=None, max_examples=300)
settings.load_profile(os.environ.get("HYPOTHESIS", "repeat"))


# `NOISE=fresh pytest` draws from the operating system, as users do; `make test` draws the same noise at every run.
if os.environ.get("NOISE", "repeat") == "repeat":

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(item: pytest.Item) -> None:
        # What looks at the keys themselves looks at real ones.
        repeated_noise.begin(None if item.path.name in {"test_bits.py", "test_fork.py"} else item.nodeid)


@pytest.fixture
def replayed_noise() -> Iterator[None]:
    """The same noise at every run of a test, in its own thread."""
    from holdfast.noise._replay import replayed
    from holdfast.noise.bits import ReplayedBits

    with replayed(ReplayedBits(1)):
        yield


@pytest.fixture(autouse=True)
def _each_test_is_a_process_of_its_own() -> None:
    """Rows that several tests open are not warned about; rows that one test opens twice are."""
    opening.forget()
