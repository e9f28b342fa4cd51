"""A child process compiles while calls go on; whatever becomes of it, the answers are there, and nothing is left behind."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from patience import PATIENCE

import windrow as wr
from windrow.compiling.ahead import Child
from windrow.compiling.jobs import dumps, examples, types_of
from windrow.engine.aligned.cutting import in_order
from windrow.engine.bounded import run
from windrow.engine.rehearsal import needed, without_functions

TABLE = pa.table({"t": range(40), "k": ["a", "b"] * 20, "x": [float(i % 7) for i in range(40)]})
QUERY = wr.query(
    time="t",
    key="k",
    windows={"t": wr.tumbling(4), "s": wr.sliding(9, every=2), "g": wr.session(3)},
    aggregates={"m": wr.mean("x"), "q": wr.quantile("x", 0.5), "d": wr.approx_distinct("x")},
)
JOB = in_order.job((types_of(np.arange(3)),))
# A process that streams with a child until all that was asked for is compiled, and prints what it has answered.
STREAM = """
    import os
    import numpy as np, pyarrow as pa, windrow as wr
    from windrow.compiling import tiers as cache
    from windrow.compiling import ahead as compile_ahead
    # Any loop that has taken a moment, however fast the machine is.
    cache.ASKED, cache.IMPORT, cache.LOAD, cache.PATIENCE = 0.0, 0.0, 2e-4, 1e9
    children = compile_ahead._children
    x = np.arange(20_000) % 97
    table = pa.table({"t": np.arange(20_000) // 10, "x": x.astype(float)})
    query = wr.query(time="t", windows={"w": wr.tumbling(7)}, aggregates={"v": wr.variance("x")})
    op, parts = query.operator(), []
    for begin in range(0, 20_000, 2_000):
        op.process(table.slice(begin, 2_000))
        parts.append(op.advance(table["t"][begin + 1_999]))
        EACH
    parts.append(op.finish())
    print(hash(str(pa.concat_tables(parts).to_pylist())))
"""
# After each batch: until the child has done what it was asked for, or has ended.
WAIT = "while children.child and not all(len(c.outcomes) > i for c, i in children.asked.values()) and children.child.is_alive(): children.child.wait()"


class Pair(NamedTuple):
    first: object
    second: object


def settings(folder):
    chosen = {"WINDROW_CACHE_DIR": str(folder), "WINDROW_TIER": "auto", "WINDROW_COMPILE_AHEAD": "1"}
    return {**os.environ, **chosen, "PYTHONHASHSEED": "0"}


def started(folder, program):
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env=settings(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output_of(process):
    out, problems = process.communicate(timeout=PATIENCE)
    assert (process.returncode, problems) == (0, "")
    return out.split()


def streamed(each="pass", more=""):
    return textwrap.dedent(STREAM).replace("EACH", each) + textwrap.dedent(more)


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What the stream says without a child."""
    program = "import os; os.environ['WINDROW_COMPILE_AHEAD'] = '0'\n" + streamed()
    return output_of(started(tmp_path_factory.mktemp("alone"), program))


@pytest.fixture
def child(tmp_path):
    child = Child(environment={"WINDROW_CACHE_DIR": str(tmp_path)})
    yield child
    child.close()


def heard(child, count):
    """What a child says of its first jobs; less if it ends."""
    while len(child.outcomes) < count and child.is_alive():
        child.wait()
    return child.outcomes


def ended(pid):
    """Wait until a process has ended that is no child of this one, and say so."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    return bool(select.select([handle], [], [], PATIENCE)[0])


# -- jobs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros(6, np.int32)[::2],
        np.zeros((2, 3), bool),
        np.zeros((2, 3), order="F"),
        np.zeros((4, 6))[::2, ::3],
        np.zeros(2, [("a", np.int64), ("b", np.uint8)]),
    ],
)
@pytest.mark.parametrize("writeable", [True, False])
def test_an_example_has_the_types_of_what_it_stands_for(array, writeable):
    array.flags.writeable = writeable
    arguments = array, Pair(1, (2.0, array)), np.int32(3), True, 2**63, None
    types = types_of(arguments)
    assert types_of(examples(types)) == types
    assert hash(types) == hash(types_of(arguments))
    from numba import typeof

    assert [typeof(a) for a in examples(types)] == [typeof(a) for a in arguments]


# In a process in which no loop was compiled: those that were are not met as plain Python.
FRESH = f"""
    import pickle
    import sys
    sys.path.insert(0, {str(Path(__file__).parents[1])!r})
    from windrow.compiling.tiers import noting
    from windrow.compiling.fingerprint import code_of
    from windrow.compiling.jobs import dumps
    from tests.compiling.test_ahead import QUERY, TABLE
    with noting() as notes:
        QUERY.run(TABLE)
"""


def test_a_job_is_the_same_loop_in_another_process(tmp_path):
    program = """
    for kernel, types in notes:
        job = kernel.job(types)
        copy = pickle.loads(dumps(job))
        assert (copy.name, copy.options, copy.arguments) == (job.name, job.options, job.arguments)
        assert code_of(copy.function) == code_of(job.function), kernel.__name__
    print(len(notes) > 20)
"""
    assert output_of(started(tmp_path, textwrap.dedent(FRESH + program))) == ["True"]


def test_a_function_that_calls_itself_and_one_closed_over_numbers_travel():
    def power(base, exponent):
        return 1 if exponent == 0 else base * power(base, exponent - 1)

    for function in (power, lambda x: x + len(TABLE)):
        copy = pickle.loads(dumps(JOB._replace(function=function)._replace(name="other"))).function
        assert copy is not function
    assert pickle.loads(dumps(JOB._replace(function=power))).function(2, 5) == 32


# -- the child ---------------------------------------------------------------------------------------


def test_a_child_keeps_what_it_compiles(child, tmp_path):
    child.send(JOB)
    assert heard(child, 1) == [True]
    assert [path.name.rsplit("-", 1)[0] for path in tmp_path.rglob("*.bin")] == [JOB.name]
    script = "from windrow.engine.aligned.cutting import in_order; import numpy as np; in_order.native(np.arange(5)); print(*in_order.native.stats.cache_hits.values())"
    process = started(tmp_path, f"import os; os.environ['WINDROW_TIER'] = 'compiled'\n{script}")
    assert output_of(process) == ["1"]


def test_a_child_says_where_nothing_can_be_compiled(child):
    child.send(JOB._replace(name="refused", function=lambda values: values.no_such_name))
    child.send(JOB)
    assert heard(child, 2) == [False, True]


def test_a_child_says_where_nothing_can_be_kept(tmp_path):
    program = """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000))  # as a disk that is full
        from windrow.compiling.ahead import Child
        from windrow.engine.aligned.cutting import in_order
        from windrow.compiling.jobs import types_of
        import numpy as np
        child = Child()
        child.send(in_order.job((types_of(np.arange(3)),)))
        while not child.outcomes and child.is_alive():
            child.wait()
        print(child.outcomes)
        child.close()
    """
    assert output_of(started(tmp_path, program)) == ["[False]"]
    assert not [path for path in tmp_path.rglob("*.*") if path.is_file()]


def test_a_folder_has_one_child(child, tmp_path):
    child.send(JOB)
    assert heard(child, 1) == [True]
    second = Child(environment={"WINDROW_CACHE_DIR": str(tmp_path)})
    second.send(JOB)
    assert heard(second, 1) == []
    second.close()


def test_more_jobs_than_fit_into_a_pipe_are_sent(child):
    large = JOB._replace(function=None, name="x" * (1 << 20))
    child.send(large)
    child.send(JOB)
    heard(child, 1)
    assert not child._unsent


# -- around a stream ---------------------------------------------------------------------------------


def test_a_stream_changes_over_to_what_its_child_has_compiled(tmp_path, answer):
    more = """
        from windrow.compiling.tiers import Kernel
        import gc
        hits = [k for k in gc.get_objects() if isinstance(k, Kernel) and "native" in vars(k) and k.native.stats.cache_hits]
        print(len(children.asked) > 0, len(hits) > 0, all(all(c.outcomes) for c, _ in children.asked.values()))
    """
    assert output_of(started(tmp_path, streamed(WAIT, more))) == [*answer, "True", "True", "True"]


def test_a_stream_goes_on_when_its_child_is_killed(tmp_path, answer):
    each = "if children.child: children.child._process.kill()"
    assert output_of(started(tmp_path, streamed(each))) == answer


def test_a_child_ends_with_its_parent_that_is_killed(tmp_path):
    each = "if children.child: print(children.child._process.pid, flush=True); children.child.wait(); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", streamed(each)],
        env=settings(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(process.stdout.readline())
    process.kill()
    process.communicate()
    assert ended(pid)


def test_ctrl_c_ends_both(tmp_path):
    each = "if children.child: print(children.child._process.pid, flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", streamed(each)],
        env=settings(tmp_path),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    pid = int(process.stdout.readline())
    os.killpg(process.pid, signal.SIGINT)
    _, problems = process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGINT
    assert problems.count("Traceback") == problems.count("KeyboardInterrupt") == 1
    assert ended(pid)


def test_a_program_without_a_guard_runs_once(tmp_path, answer):
    script = tmp_path / "program.py"
    script.write_text(streamed(WAIT, "print('once')"))
    command = [sys.executable, "-W", "error", str(script)]
    done = subprocess.run(command, env=settings(tmp_path), capture_output=True, text=True, check=True)
    assert done.stdout.split() == [*answer, "once"]


def test_a_process_that_was_forked_has_no_child(tmp_path):
    more = """
        if os.fork() == 0:
            print(compile_ahead._children.child, len(compile_ahead._children.asked), flush=True)
            del children  # nothing is said of a child that is none
            os._exit(0)
        os.wait()
        print(children.child is not None and children.child.is_alive())
    """
    _, *seen = output_of(started(tmp_path, streamed(more=more)))
    assert seen == ["None", "0", "True"]


@pytest.mark.parametrize("setting", ["WINDROW_COMPILE_AHEAD=0", "WINDROW_CACHE_DIR=/dev/null/none"])
def test_no_child_is_started_where_it_is_of_no_use(tmp_path, answer, setting):
    name, value = setting.split("=")
    program = f"import os; os.environ[{name!r}] = {value!r}\n" + streamed(
        more="print(children.child, len(children.asked))"
    )
    assert output_of(started(tmp_path, program)) == [*answer, "None", "0"]


# -- rehearsals --------------------------------------------------------------------------------------


def test_a_rehearsal_meets_the_loops_of_a_run(tmp_path):
    program = """
    from functools import partial
    from windrow.engine.bounded import run
    from windrow.engine.rehearsal import needed
    found = needed(QUERY, TABLE, partial(run, on_bad="divert"))
    print(len(found) > 20, [kernel.__name__ for kernel, _ in found] == [kernel.__name__ for kernel, _ in notes])
"""
    assert output_of(started(tmp_path, textwrap.dedent(FRESH + program))) == ["True", "True"]


def test_a_rehearsal_chooses_stores_as_the_run_over_all_events_will(tmp_path):
    """In a process of its own, as loops that are compiled are not needed."""
    program = """
    from functools import partial
    import numpy as np, pyarrow as pa, windrow as wr
    from windrow.engine.bounded import run
    from windrow.engine.rehearsal import needed

    aggregates = {"n": wr.count(), "m": wr.mean("x"), "d": wr.approx_distinct("x")}
    query = wr.query(time="t", windows={"s": wr.sliding(60, every=10)}, aggregates=aggregates)
    for rows in (64, 2_000_000):
        table = pa.table({"t": np.arange(rows) // 100, "x": np.arange(rows) % 9.0})
        found = [kernel.__name__ for kernel, _ in needed(query, table, partial(run, on_bad="divert"))]
        print(",".join(sorted(name for name in found if name.startswith("merge_"))))
"""
    few, many = output_of(started(tmp_path, textwrap.dedent(program)))
    assert few == "merge_lazy,merge_lazy,merge_lazy"
    assert many == "merge_prefix,merge_queue,merge_queue"


def test_a_rehearsal_calls_no_function_of_the_users():
    calls = []

    def lift(x):
        calls.append(x)
        return x

    own = wr.aggregate(columns=["x"], lift=lift, combine=lambda a, b: a + b, identity=0.0, lower=lambda a: a)
    query = wr.query(time="t", windows={"w": wr.tumbling(4)}, aggregates={"n": wr.count(), "own": own})
    assert set(without_functions(query).aggregates) == {"n"}
    needed(query, TABLE, partial(run, on_bad="divert"))
    assert calls == []
    assert without_functions(wr.query(time="t", windows={"w": wr.tumbling(4)}, aggregates={"o": own})) is None


def test_bad_rows_end_a_rehearsal_without_an_error():
    table = TABLE.set_column(0, "t", pa.array([1, None] * 20))

    def refused(query, table):
        raise wr.DataError("t", 1, None, "is null")

    assert needed(QUERY, table, refused) == []


def test_the_loops_of_a_rehearsal_are_asked_for_in_reverse(tmp_path):
    program = """
        import numpy as np, pyarrow as pa, windrow as wr
        from functools import partial
        from windrow.engine import rehearsal
        from windrow.compiling import ahead as compile_ahead
        from windrow.engine.bounded import run
        table = pa.table({"t": np.arange(1000), "x": np.arange(1000.0)})
        query = wr.query(time="t", windows={"w": wr.tumbling(7)}, aggregates={"v": wr.mean("x")})
        answer = partial(run, on_bad="divert")
        found = [(k.__name__, types) for k, types in rehearsal.needed(query, table, answer)]
        rehearsal.begin(query, table, answer)
        asked = [(k.__name__, types) for k, types in compile_ahead._children.asked]
        print(len(found) > 5, found[::-1] == asked)
    """
    assert output_of(started(tmp_path, program)) == ["True", "True"]
