"""Tasks that the caller and helper threads share."""

from __future__ import annotations

import os
import threading
from functools import partial

import pytest
from patience import PATIENCE

from windrow.engine.pool import helpers, together


def test_results_come_in_the_order_of_the_tasks():
    assert together([lambda _, i=i: i * i for i in range(20)], 3) == [i * i for i in range(20)]


def test_two_tasks_run_at_the_same_time():
    both = threading.Barrier(2, timeout=PATIENCE)
    assert sorted(together([lambda _: both.wait(), lambda _: both.wait()], 2)) == [0, 1]


def test_one_thread_is_the_caller():
    me = threading.get_ident()
    assert together([lambda _: threading.get_ident()] * 3, 1) == [me] * 3


def test_work_is_done_while_all_helpers_are_busy(monkeypatch):
    class Busy:
        def submit(self, work):
            return helpers().submit(wait_for_release)

    def wait_for_release():
        assert release.wait(PATIENCE)

    release = threading.Event()
    monkeypatch.setattr("windrow.engine.pool.helpers", Busy)
    tasks = [lambda _, i=i: i for i in range(5)]
    assert together([*tasks, lambda _: release.set()], 2) == [*range(5), None]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_task_that_fails_stops_the_others_and_is_told_of(failing):
    begun = threading.Barrier(2, timeout=PATIENCE)
    stopped: list[int] = []
    further: list[int] = []

    def task(number, stop):
        begun.wait()
        if number == failing:
            raise KeyError(number)
        assert stop.wait(PATIENCE)
        stopped.append(number)

    tasks = [partial(task, 0), partial(task, 1), lambda _: further.append(2)]
    with pytest.raises(KeyError) as caught:
        together(tasks, 2)
    assert caught.value.args == (failing,)
    assert stopped == [1 - failing]
    assert not further


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own():
    together([lambda _: None] * 2, 2)
    child = os.fork()
    if not child:
        both = threading.Barrier(2, timeout=PATIENCE)
        os._exit(0 if sorted(together([lambda _: both.wait()] * 2, 2)) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
