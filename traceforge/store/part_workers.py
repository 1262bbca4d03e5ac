"""Tables in parts, made by workers. In: an open database, an executor. Out: its tables, with the rows in their order.

Idea: what a part is made from lies in files that all workers see. Raw rows of a folder database lie there already; any
other table is written once, as Parquet, before the first part that reads it. What workers send back are names of files,
whose rows are added in the order of parts. These files then serve the tables that read them, so that nothing that was
made in parts is written twice.
"""

import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from traceforge.errors import InputUnusableError
from traceforge.store.database import Store
from traceforge.store.documents import Document, in_order
from traceforge.store.migrations import facts_form
from traceforge.store.part_task import MadePart, PartTask, make_part, rows_of
from traceforge.store.partitions import files_by_table
from traceforge.store.spool import spool_folder
from traceforge.store.workers import ReaderPool, results_in_order

_MOST_AHEAD = 64  # parts whose rows wait on disk


@contextmanager
def part_workers(
    store: Store, documents: Sequence[Document], executor: Executor | None
) -> "Iterator[PartWorkers | None]":
    """What makes tables in parts until the stages are built; None where there is no executor.

    Args:
        documents: of all stages.
    """
    if executor is None:
        yield None
        return
    with spool_folder(store.scratch) as spool:
        yield PartWorkers(store, documents, executor, spool)


class PartWorkers:
    """Makes tables in parts; see `part_workers`.

    Args:
        spool: a folder that all workers see.
    """

    def __init__(self, store: Store, documents: Sequence[Document], executor: Executor, spool: Path) -> None:
        self._store = store
        self._known = {**facts_form(), **{document.name: document for document in documents}}
        self._executor = executor
        self._spool = spool
        self._files: dict[str, list[Path]] = {}
        self._facts = files_by_table(store.folder, store.partitions()) if store.folder else {}
        self._count = 0

    def make(self, package: str, documents: Sequence[Document], on_share: Callable[[float], None]) -> bool:
        """See `stage.PartMaker`."""
        parts = self._store.records(f"SELECT * FROM {documents[0].parts} ORDER BY ALL")
        if len(parts) < 2:
            return False
        reads = self._reads(documents)
        tasks = [self._task(package, documents, reads, values) for values in parts]
        instead = partial(_instead, self._executor)
        done = []

        def on_done(task: PartTask, _made: MadePart) -> None:
            done.append(task)
            on_share(len(done) / len(tasks))

        made = results_in_order(self._executor, make_part, tasks, _has_room, instead, on_done)
        with closing(made):
            for place, (_, part) in enumerate(made):
                self._add(documents, part, is_first=place == 0)
        return True

    def _reads(self, documents: Sequence[Document]) -> list[Document]:
        """What some tables read, and the views among it, in build order."""
        found: dict[str, Document] = {}
        todo = [name for document in documents for name in document.reads]
        own = {document.name for document in documents}
        while todo:
            name = todo.pop()
            if name in self._known and name not in found and name not in own:
                found[name] = self._known[name]
                todo += () if found[name].kind == "TABLE" else found[name].reads
        return in_order(found.values())

    def _task(
        self, package: str, documents: Sequence[Document], reads: Sequence[Document], values: Mapping[str, object]
    ) -> PartTask:
        self._count += 1
        tables = [one.name for one in reads if one.kind == "TABLE"]
        return PartTask(
            package=package,
            documents=tuple(documents),
            values=values,
            folder=self._spool / f"part{self._count}",
            views=tuple(one for one in reads if one.kind != "TABLE"),
            tables={name: self._written(name) for name in tables if not self._is_partitioned(name)},
            facts={name: self._partitions(name, values) for name in tables if self._is_partitioned(name)},
            readable=(self._spool, *([self._store.folder.facts] if self._store.folder else [])),
        )

    def _is_partitioned(self, name: str) -> bool:
        return self._store.folder is not None and name.startswith("raw.")

    def _partitions(self, name: str, values: Mapping[str, Any]) -> list[str]:
        """The files of a raw table in which a part lies."""
        found = self._facts.get(name, [])
        sources = [source_id for source_id, _ in found]
        first, last = values["first_source_id"], values["last_source_id"]
        return [file for _, file in found[bisect_left(sources, first) : bisect_right(sources, last)]]

    def _written(self, name: str) -> list[Path]:
        """Files with all rows of a table."""
        if name not in self._files:
            path = self._spool / f"{name}.parquet"
            literal = str(path).replace("'", "''")
            self._store.execute(f"COPY (FROM {name}) TO '{literal}' (FORMAT PARQUET)")
            self._files[name] = [path]
        return self._files[name]

    def _add(self, documents: Sequence[Document], part: MadePart, *, is_first: bool) -> None:
        for document in documents:
            path = part.files[document.name]
            self._files[document.name] = [*([] if is_first else self._files[document.name]), path]
            if is_first:
                self._store.create(document.with_query(rows_of([path])) if document.query else document)
            if not is_first or not document.query:
                self._store.execute(f"INSERT INTO {document.name} {rows_of([path])}")
        self._store.release_beyond()


def _has_room(ahead: Sequence[PartTask], _task: PartTask) -> bool:
    return len(ahead) < _MOST_AHEAD


def _instead(executor: Executor, task: PartTask, error: Exception) -> MadePart:
    """The part whose task failed, made once more where a process crashed.

    Raises:
        InputUnusableError: the next one did, too.
        Exception: what a worker raised, for this process would not fare better.
    """
    if not isinstance(error, BrokenExecutor) or not isinstance(executor, ReaderPool):
        raise error
    shutil.rmtree(task.folder, ignore_errors=True)
    try:
        return executor.run_alone(make_part, task)
    except BrokenExecutor as again:
        raise crashed(task) from again


def crashed(task: PartTask) -> InputUnusableError:
    """The error of a part whose worker crashed again and again."""
    names = ", ".join(document.name for document in task.documents)
    where = ", ".join(f"{name} {value}" for name, value in task.values.items())
    hint = "perhaps there is too little memory: --jobs 1 works on fewer ranks at once"
    return InputUnusableError(f"the process that made {names} crashed, or was killed", where=where, hint=hint)
