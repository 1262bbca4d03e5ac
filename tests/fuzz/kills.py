"""Commands killed at random moments. In: a small job. Out: how many kills left something that should not be.

`python -m tests.fuzz.kills --count 300 --seed 1` starts one command after another (ingest into a file and into a
folder, stages, report, pack, unpack; one or two readers), ends it by SIGKILL, SIGTERM, SIGINT or SIGHUP, at a random
moment of the time that it takes, and judges what is left; it ends with 1 if a kill broke a promise.

Judged of each: the exit code is the documented one, 128 + N for signal N, and no traceback is printed (but by a
Python that has not started yet); five seconds later no process of it lives; after a signal other than SIGKILL no file
of it is left but its database, unless a busy machine gave it no time to tidy up (`traceforge.cli.process` waits 10 s;
said as "at once"); the database opens; the same command then ends well, its tables have the rows of a run that nobody
disturbed, and nothing lies beside it or among temporary files.
Not handled: a machine that loses power; on one without /proc processes are not looked for.
"""

import argparse
import contextlib
import gzip
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from tests.cli.processes import trace
from tests.cli.running import run
from tests.conftest import ROOT
from traceforge.cli.process import ENDED_AT_ONCE_AFTER_S
from traceforge.errors import TraceforgeError
from traceforge.store.database import Store

PATIENCE_S = 5.0
_LONGEST_S = 3600.0
_HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_SIGNALS = (*[signal.SIGKILL] * len(_HANDLED), *_HANDLED)
_TABLES = """
SELECT schema_name || '.' || table_name FROM duckdb_tables() WHERE schema_name NOT IN ('main') AND NOT temporary
UNION ALL
SELECT schema_name || '.' || view_name FROM duckdb_views() WHERE schema_name = 'raw'
ORDER BY 1
"""
Rows = dict[str, tuple[int, int | None]]
"""Number of rows and a sum over them, by table."""


@dataclass(frozen=True)
class Command:
    """A command and what it works on, by names below a folder of its own.

    Attributes:
        words: of the command line; `{here}` is the folder, `{job}` the traces.
        database: what it makes or changes; None where it leaves none.
        given: what lies there before, by name, as it is among the prepared things.
        made: other files that it makes.
    """

    words: tuple[str, ...]
    database: str | None
    given: Mapping[str, str] = field(default_factory=dict)
    made: frozenset[str] = frozenset()


COMMANDS = {
    "ingest": Command(("ingest", "{job}", "--db", "{here}/a.duckdb", "--jobs", "1"), "a.duckdb"),
    "ingest by two": Command(("ingest", "{job}", "--db", "{here}/a.duckdb", "--jobs", "2"), "a.duckdb"),
    "ingest into a folder": Command(("ingest", "{job}", "--db", "{here}/a/", "--jobs", "2"), "a"),
    "stages": Command(("info", "{here}/a.duckdb"), "a.duckdb", {"a.duckdb": "facts.duckdb"}),
    "report": Command(("report", "{job}", "-o", "{here}/a.html", "--jobs", "2"), None, made=frozenset({"a.html"})),
    "pack": Command(("pack", "{here}/b", "{here}/a.duckdb"), "a.duckdb", {"b": "folder"}),
    "unpack": Command(("unpack", "{here}/b.duckdb", "{here}/a/"), "a", {"b.duckdb": "whole.duckdb"}),
}


@dataclass
class Judge:
    """Kills commands in a folder of its own.

    Attributes:
        job: folder of traces.
        folder: empty; the judge's own.
        kills: how many commands were killed before they ended.
        by_signal: the same, by the signal's name and the code that the command ended with.
        last: the same of the last one.
    """

    job: Path
    folder: Path
    kills: int = 0
    by_signal: Counter[str] = field(default_factory=Counter)
    last: str = ""
    _seconds: dict[str, float] = field(default_factory=dict, repr=False)
    _expected: Rows = field(default_factory=dict, repr=False)

    def prepare(self) -> None:
        """Learn what an undisturbed run leaves."""
        self._prepared.mkdir()
        self._temporary.mkdir()
        whole = self._prepared / "whole.duckdb"
        assert run("ingest", self.job, "--db", whole, "--jobs", 1).returncode == 0
        self._expected = rows_of(whole)

    def _given(self, name: str) -> Path:
        """What a command is given, made when it is first asked for."""
        path, whole = self._prepared / name, self._prepared / "whole.duckdb"
        if not path.exists() and name == "folder":
            assert run("unpack", whole, f"{path}/").returncode == 0
        elif not path.exists():
            shutil.copy(whole, path)
            with Store(path) as store:
                store.execute("DELETE FROM meta.build")
        return path

    @property
    def _prepared(self) -> Path:
        return self.folder / "prepared"

    @property
    def _temporary(self) -> Path:
        return self.folder / "tmp"

    @property
    def _said(self) -> Path:
        return self.folder / "stderr"

    def kill(self, name: str, source: random.Random) -> bool:
        """Kill one command and judge what is left; whether it was still running.

        Raises:
            AssertionError: a promise is broken.
        """
        command, number = COMMANDS[name], source.choice(_SIGNALS)
        if name not in self._seconds:
            with self._place(command) as here:
                began = time.monotonic()
                assert self._started(command, here).wait(_LONGEST_S) == 0
                self._seconds[name] = time.monotonic() - began
        with self._place(command) as here:
            process = self._started(command, here)
            was_running = False
            try:
                process.wait(source.uniform(0, self._seconds[name]))
            except subprocess.TimeoutExpired:
                was_running = True
                self.kills += 1
            began = time.monotonic()
            process.send_signal(number)
            code = process.wait(_LONGEST_S)
            took_s = time.monotonic() - began
            is_at_once = code == 128 + number and took_s >= ENDED_AT_ONCE_AFTER_S
            self.last = f"{number.name} {code}{' at once' if is_at_once else ''}"
            self.by_signal[self.last] += was_running
            assert all_gone(process.pid), "a process lives on"
            if was_running:
                self._judge_code(code, number)
            if code != -signal.SIGKILL and not is_at_once:
                self._judge_left(command, here)
            if code == 0 and command.database:
                assert rows_of(here / command.database) == self._expected, "it ended well, but its work is not done"
            self._judge_again(command, here)
        return code != 0

    def _judge_code(self, code: int, number: int) -> None:
        """The documented code and no traceback; before its first line and after its last one a signal's own effect."""
        said = self._said.read_text(encoding="utf-8", errors="replace")
        documented = {-number, 0} if number == signal.SIGKILL else {128 + number, -number, 0}
        if "Fatal Python error: init_import_site" in said:
            return  # Python itself was starting
        assert code in documented, f"exit code {code} after {signal.Signals(number).name}: {said[-2000:]}"
        if code == 128 + number:
            assert "Traceback" not in said, said[-2000:]
            assert f"ended by {signal.Signals(number).name}" in said, said[-2000:]

    @contextmanager
    def _place(self, command: Command) -> Iterator[Path]:
        here = self.folder / "here"
        here.mkdir()
        for target, prepared in command.given.items():
            given = self._given(prepared)
            copy = shutil.copytree if given.is_dir() else shutil.copy
            copy(given, here / target)
        try:
            yield here
        finally:
            shutil.rmtree(here)

    def _words(self, command: Command, here: Path) -> list[str]:
        return [word.format(here=here, job=self.job) for word in command.words]

    def _started(self, command: Command, here: Path) -> subprocess.Popen[bytes]:
        _heed_signals()
        with self._said.open("wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "traceforge", *self._words(command, here)],
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(self._temporary)},
                stdout=subprocess.DEVNULL,
                stderr=said,
                cwd=ROOT,
                start_new_session=True,
            )

    def _judge_left(self, command: Command, here: Path) -> None:
        own = {*command.given, *command.made, *([command.database] if command.database else [])}
        beside = {f"{name}.wal" for name in own}
        left = {path.name for path in here.iterdir()} - own - beside
        assert not left, f"left beside: {sorted(left)}"
        found = sorted(path.name for path in self._temporary.iterdir())
        assert not found, f"left among temporary files: {found}"

    def _judge_again(self, command: Command, here: Path) -> None:
        """The same command once more, in this process, which is sooner ready."""
        target = here / command.database if command.database else None
        if command.words[0] in ("pack", "unpack") and target is not None and target.exists():
            # What is packed is whole or not there, and nothing is written over.
            assert rows_of(target) == self._expected, "what was packed is not whole"
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        elif target is not None and target.exists():
            Store(place_of(target)).close()
        with mock.patch.object(tempfile, "tempdir", str(self._temporary)):
            done = run(*self._words(command, here))
        assert done.returncode == 0, done.stderr
        if target is not None:
            assert rows_of(target) == self._expected, "another run gives other rows"
        self._judge_left(command, here)


def _heed_signals() -> None:
    """Undo what `nohup` and `&` do, which have this process and those that it starts ignore signals."""
    for number in _HANDLED:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def small_job(folder: Path) -> Path:
    """Four ranks below a folder."""
    job = folder / "job"
    job.mkdir()
    for rank in range(4):
        (job / f"rank{rank}.json.gz").write_bytes(gzip.compress(trace(rank)))
    return job


def place_of(database: Path) -> str:
    """A database as users name it."""
    return f"{database}/" if database.is_dir() else str(database)


def rows_of(database: Path) -> Rows:
    """What all tables of a database hold."""
    found: Rows = {}
    with Store(place_of(database), read_only=True) as store:
        for (name,) in store.rows(_TABLES):
            ((count, total),) = store.rows(f"SELECT COUNT(*), BIT_XOR(HASH(t)) FROM {name} AS t")
            # Views over files and tables of them differ in whether they are tables.
            found[str(name)] = (int(count), total if str(name).startswith(("raw.", "align.", "timeline.")) else None)
    return found


def all_gone(session: int) -> bool:
    """Whether no process of a session lives any more, after some patience."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if not any(_belongs(status, session) for status in Path("/proc").glob("[0-9]*/stat")):
            return True
        time.sleep(0.1)
    return False


def _belongs(status: Path, session: int) -> bool:
    try:
        state, _parent, _group, found, *_ = status.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(found) == session and state != "Z"


def kill_many(judge: Judge, count: int, source: random.Random) -> Iterator[int]:
    """Kill all commands in turn; after each how many kills broke a promise so far."""
    names, broken = list(COMMANDS), 0
    while judge.kills < count:
        name = names[judge.kills % len(names)]
        try:
            judge.kill(name, source)
        except (AssertionError, TraceforgeError) as error:  # the latter of a database that does not open
            broken += 1
            print(f"kill {judge.kills} of {name}, {judge.last}: {error}", file=sys.stderr, flush=True)
        yield broken


def main() -> int:
    """Kill as the command line asks; 1 if a kill broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--job", type=Path, help="folder of traces; by default four small ranks")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # `nohup` and `&` would have it ignored
    source = random.Random(options.seed)  # noqa: S311 - to be repeated, not to be secret
    with tempfile.TemporaryDirectory(prefix="traceforge-kills-") as folder:
        judge, broken = Judge(options.job or small_job(Path(folder)), Path(folder)), 0
        judge.prepare()
        with contextlib.suppress(KeyboardInterrupt):  # what was done until then is said
            for broken in kill_many(judge, options.count, source):
                if judge.kills % 10 == 0:
                    print(f"{judge.kills} kills, {broken} broke a promise", flush=True)
    print(", ".join(f"{name}: {count}" for name, count in sorted(judge.by_signal.items())))
    print(f"{judge.kills} kills, {broken} broke a promise")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
