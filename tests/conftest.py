"""What all tests share: samples and their databases, the profiles of random examples, how tests are spread."""

import fcntl
import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from tests.stories import told_together  # noqa: F401  # a fixture of every module
from traceforge import api
from traceforge.store.database import Store

# Every run tries new examples, unless `CI` is set. `.ci/run` leaves the properties out of its suite and tries them on
# four times as many new ones in a step of its own (`-m hypothesis --hypothesis-profile fresh`): what fails is printed.
# A busy machine is no counterexample.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("usual", _PATIENT, max_examples=25)
settings.register_profile("repeatable", _PATIENT, max_examples=25, derandomize=True)
settings.register_profile("fresh", _PATIENT, max_examples=100, derandomize=False, print_blob=True, database=None)
settings.load_profile("repeatable" if os.environ.get("CI") else "usual")

# What is collected lives until the end, and is so much that to look through it again and again takes seconds.
gc.disable()

ROOT = Path(__file__).parent.parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write reports/*/ anew; say in the commit why they moved"
    )


def pytest_collection_finish() -> None:
    """Collect garbage again, but none of what was collected as tests."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep neighbouring tests in one process, where fixtures are made once, until another process has nothing to do."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def _without_comments() -> Iterator[None]:
    """Have databases of tests without comments, which take a small one half of its time, unless `documented` asks."""
    with stores_are_kept(False):
        yield


@pytest.fixture
def documented() -> Iterator[None]:
    """Databases with comments on tables and columns, as users get them."""
    with stores_are_kept(True):
        yield


@contextmanager
def stores_are_kept(answer: bool) -> Iterator[None]:
    """Whether databases get comments where nothing is said of it."""
    with mock.patch.dict(Store.__init__.__kwdefaults__, {"is_kept": answer}):
        yield


@pytest.fixture(scope="session")
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def sample_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Gives the database of samples, each a run of its own: made by the first test of all processes that asks.

    Not to be changed: whoever wants to write takes a copy.
    """
    return lambda *samples: _kept(tmp_path_factory, *(ROOT / "sample_traces" / sample for sample in samples))


@pytest.fixture(scope="session")
def corpus_database(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Callable[[str], Path]:
    """Gives the database of real traces, such as `kineto/megatron_tp2`, without comments; else as `sample_database`."""
    return lambda folder: _kept(tmp_path_factory, corpus / "traces" / folder, is_documented=False)


def _kept(tmp_path_factory: pytest.TempPathFactory, *folders: Path, is_documented: bool = True) -> Path:
    """The database of these folders, made by the first test of all processes that asks."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "shared_databases"
    shared.mkdir(exist_ok=True)
    path = shared / f"{'+'.join(folder.name for folder in folders)}.duckdb"
    with (shared / f"{path.stem}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            making = path.with_suffix(".making")
            with Store(making, is_kept=is_documented) as store:
                with mock.patch.object(api, "analyze"):  # once, of all folders
                    for folder in folders:
                        api.ingest([folder], store, jobs=1)
                api.analyze(store)
            making.rename(path)
    return path


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real traces that other people recorded; not part of the project."""
    folder = os.environ.get("TRACEFORGE_CORPUS")
    if not folder:
        pytest.skip("TRACEFORGE_CORPUS is not set: no corpus of real traces")
    return Path(folder)
