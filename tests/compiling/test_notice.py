"""Who waits for a compiler is told so: once, and only where somebody reads it."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from windrow.compiling import notice


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def written(monkeypatch):
    """What three loops have written to stderr, each of which took so many seconds, with these settings."""

    def compile_three(seconds, stderr, **settings):
        clock = iter([0.0, seconds] * 3)
        monkeypatch.setattr(notice.time, "perf_counter", lambda: next(clock))
        monkeypatch.setattr(notice, "_NAMES", [])
        monkeypatch.setattr(notice, "_seconds", 0.0)
        monkeypatch.setattr(notice, "_is_said", False)
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.delenv("WINDROW_QUIET", raising=False)
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        for name in ("fold", "merge", "lower"):
            with notice.compiling(name):
                pass
        return stderr.getvalue()

    return compile_three


def test_a_second_of_compiling_is_told_in_one_line(written):
    (line,) = written(0.6, Terminal()).splitlines()
    assert line.startswith("windrow: compiling fold, merge, 1.2 s so far; kept ")


def test_less_than_a_second_is_not_told(written):
    assert written(0.2, Terminal()) == ""


def test_nothing_is_written_where_nobody_reads(written):
    assert written(5.0, io.StringIO()) == ""


def test_a_notebook_counts_as_a_reader(written, monkeypatch):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    assert "fold" in written(5.0, io.StringIO())


def test_a_terminal_of_ipython_and_an_import_of_its_kernel_are_no_notebook(written, monkeypatch):
    shell = SimpleNamespace(get_ipython=lambda: object())
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    assert written(5.0, io.StringIO()) == ""


def test_a_setting_turns_it_off(written):
    assert written(5.0, Terminal(), WINDROW_QUIET="1") == ""
