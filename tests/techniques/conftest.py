"""Techniques without a compiler: their algorithms are the same, and compiling each with each aggregate takes minutes.

Compiled they run over long streams (`compiled` asks for it), in the benchmarks' tests, and everywhere at night.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from interpreted import with_compiled_sketches
from profiles import NIGHTLY

from benchmarks.techniques import partials
from windrow.compiling import compiler

# Loops that were put together before; not those of `partials`, which are compiled.
_LOOPS: dict[Any, Any] = {}


def interpreted(known: dict[Any, Any], loop: Any, given: Any) -> Any:
    """In the place of `compiled_with`: the loop as plain Python, where whole numbers wrap as in compiled code."""
    known = {stand_in: with_compiled_sketches(function) for stand_in, function in known.items()}
    plain = compiler.bound(loop, known)

    @functools.wraps(plain)
    def run(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return plain(*arguments)

    return run


@pytest.fixture(autouse=True)
def _without_compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not NIGHTLY and "compiled" not in request.fixturenames:
        monkeypatch.setattr(partials, "compiled_with", interpreted)
        monkeypatch.setattr(partials, "_LOOPS", _LOOPS)


@pytest.fixture
def compiled() -> None:
    """For tests that need the compiler by day, too."""
