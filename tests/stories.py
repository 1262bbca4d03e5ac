"""Stories that only ask share one database. In: the traces of a story. Out: its run, in a store with stages built.

To build the stages takes about a CPU second, however little they hold; a further run in the same store takes a fraction
of it. So `told(*traces)` gives the run of these traces out of a store of many, which no test may change. Which stories
there will be, the fixture `told_together` finds out before the first test of a module: it calls each test, whose runs
have no answers yet. A test reads as if it had a store of its own, and has one where its story was not foreseen.

Not for tests that change the store, that call what reads a store, and for what compares runs, such as the forecast.
"""

import hashlib
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Self, cast

import pytest

from tests.given import Trace, built, store_of_runs, tables_of
from traceforge.store.database import Store

if TYPE_CHECKING:
    import polars as pl

_STAGES = "align|timeline|operation|fabric|graph|replay|attribute"
_TABLE = re.compile(rf"\b(FROM|JOIN) ((?:{_STAGES})\.\w+|meta\.issue)\b")
_OF_NO_RUN = re.compile(r"\bmeta\.(?!issue\b)|\bforecast\.|\bFROM raw\.")


class Run:
    """One run of a store, which may hold others: queries see the stages' rows of this run alone."""

    def __init__(self, store: Store, run_id: int) -> None:
        self.store, self.run_id = store, run_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        """The store stays open, as other stories are in it."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> "pl.DataFrame":
        """Result of a query, as `Store.query` has it."""
        assert not _OF_NO_RUN.search(sql), "these tables know no run"
        return self.store.query(_TABLE.sub(rf"\1 (SELECT * FROM \2 WHERE run_id = {self.run_id})", sql), parameters)


class _Unheard(Run):
    """What a test is given while it is called for its stories alone: a run without an answer, so that it soon fails."""

    def __init__(self) -> None:
        """No store."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> "pl.DataFrame":
        import polars as pl

        return pl.DataFrame()


@dataclass(frozen=True)
class _Story:
    """Traces and the stage that is asked for; two of the same content are equal."""

    stage: str
    world_size: int | None
    content: str
    traces: tuple[Trace, ...] = field(compare=False)


class _Told:
    """The stories told so far; and, while tests are called for their stories alone, what they would tell."""

    def __init__(self) -> None:
        self.runs: dict[_Story, Run] = {}
        self.foreseen: list[_Story] | None = None
        self.text = ""

    def add(self, stage: str, stories: Sequence[_Story]) -> None:
        """Tell stories that ask for the same stage."""
        store = store_of_runs(*(story.traces for story in stories))
        for run_id, story in enumerate(stories):
            store.execute("UPDATE meta.run SET world_size = ? WHERE run_id = ?", [story.world_size, run_id])
        built(store, *_asked(self.text, stage))
        self.runs |= {story: Run(store, run_id) for run_id, story in enumerate(stories)}


_TOLD = _Told()


def _asked(text: str, stage: str) -> Sequence[str]:
    """The tables of stages that a module's text names, or all of them where it asks what any of them may note."""
    tables = [name for name in tables_of(*stage.split()) if re.search(rf"\b{re.escape(name)}\b", text)]
    return stage.split() if "meta.issue" in text or not tables else tables


def told(*traces: Trace, stage: str = "attribute", world_size: int | None = None) -> Run:
    """The run of these traces, in a store with a stage built (or several: `timeline graph`), and what they read.

    Of the stage those tables are made that the test's module names, and what they read.
    """
    content = hashlib.sha256(repr([vars(trace) for trace in traces]).encode()).hexdigest()
    story = _Story(stage, world_size, content, traces)
    if _TOLD.foreseen is not None:
        _TOLD.foreseen.append(story)
        return _Unheard()
    if story not in _TOLD.runs:
        _TOLD.add(stage, [story])
    return _TOLD.runs[story]


@pytest.fixture(scope="module", autouse=True)
def told_together(request: pytest.FixtureRequest) -> Iterator[None]:
    """Builds the stories of a module that has `told`, together. What they hold is let go after its tests."""
    tests = request.session.items if getattr(request.module, "told", None) is told else ()
    _TOLD.text = inspect.getsource(request.module) if tests else ""
    here = [test for test in tests if isinstance(test, pytest.Function) and test.module is request.module]
    stories = list(dict.fromkeys(story for test in here for story in _foreseen(test)))
    for stage in {story.stage for story in stories}:
        _TOLD.add(stage, [story for story in stories if story.stage == stage])
    yield
    _TOLD.runs.clear()


def _foreseen(test: pytest.Function) -> list[_Story]:
    """The stories of a test that takes nothing but its parameters, up to where it needs an answer."""
    parameters = test.callspec.params if hasattr(test, "callspec") else {}
    takes_more = inspect.signature(test.obj).parameters.keys() - parameters.keys()
    if takes_more or hasattr(test.obj, "hypothesis") or not _tells(test.obj.__code__, vars(test.module), set()):
        return []
    _TOLD.foreseen = stories = []
    try:
        test.obj(**parameters)
    except (Exception, pytest.fail.Exception, pytest.skip.Exception):  # noqa: BLE001  # it fails for want of answers
        return stories
    finally:
        _TOLD.foreseen = None
    return stories


def _tells(code: CodeType, module: Mapping[str, object], seen: set[str]) -> bool:
    """Whether a function names `told`, or a function of its module that does."""
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    if "told" in code.co_names or any(_tells(part, module, seen) for part in inner):
        return True
    called = [name for name in code.co_names if name not in seen and isinstance(module.get(name), FunctionType)]
    seen.update(called)
    return any(_tells(cast(FunctionType, module[name]).__code__, module, seen) for name in called)
