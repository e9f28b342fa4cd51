"""Every transcript, on the embedded engine."""

from __future__ import annotations

from pathlib import Path

import pytest
from functions import FUNCTIONS

from windrow.testing import EmbeddedEngine, run_transcript

TRANSCRIPTS = sorted((Path(__file__).parent.parent / "transcripts").glob("*.yaml"))


def test_there_are_at_least_thirty_transcripts():
    assert len(TRANSCRIPTS) >= 30


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_embedded_engine_follows_the_transcript(path):
    run_transcript(path, EmbeddedEngine(), functions=FUNCTIONS)
