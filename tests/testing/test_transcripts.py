"""Transcripts as users run them; those of windrow's own are in `tests/transcripts`."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.testing import Transcript, run_transcript

TEXT = """
query:
  time: t
  windows: {w: "tumbling(10)"}
  aggregates: {n: "count()"}
columns: {t: int64}
steps:
  - events: |
      t
      1
      4
  - watermark: 10
    expect: |
      window start end n
      w      0     10  2
  - finish: true
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(TEXT)
    return tmp_path / "job.yaml"


def test_a_file_runs_on_the_embedded_engine_where_no_other_is_named(path: Path) -> None:
    run_transcript(path)


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        ("w      0     10  2", "w      0     10  3", "step 2: n should be 3, not 2, in the row"),
        ("w      0     10  2", "", "step 2: 1 rows too many, first: window='w', start=0, end=10, n=2"),
        ("window start end n", "window start end m", "step 2: expected columns .*'m'.*, got .*'n'"),
        ("watermark: 10", "watermark: 9", "step 2: 1 rows are missing, first: window='w', start=0"),
        (
            "    expect: |\n",
            "    error: it must not\n    not: |\n",
            "step 2: no error, but expected one with 'it must not'",
        ),
        ("  - events", "  - event", "a step begins with what is done, not with 'event'"),
        ("      4\n", "      4 5\n", r"1 columns \['t'\], but 2 values in \['4', '5'\]"),
    ],
)
def test_what_is_not_as_expected_is_said_with_the_step(
    path: Path, written: str, instead: str, says: str
) -> None:
    path.write_text(TEXT.replace(written, instead))
    with pytest.raises(AssertionError, match=says):
        run_transcript(path)


def test_a_transcript_can_be_read_and_driven_by_hand(path: Path) -> None:
    transcript = Transcript(path)
    operator = transcript.query.operator(mode=transcript.mode, lateness=transcript.lateness)
    events, watermark, _ = transcript.steps
    operator.process(events.argument)
    assert operator.advance(watermark.argument)["n"].to_pylist() == [2]
    assert watermark.expected == {"expect": "window start end n\nw      0     10  2\n"}
