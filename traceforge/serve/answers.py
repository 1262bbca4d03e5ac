"""What each tool answers. In: an open database and a run. Out: a page of JSON.

Idea: a tool runs one query, and shows it. Where the run allows no answer, that is what the tool says, in the words of
the verdict; a NULL is something that was not measured, never a zero.
"""

import re
from collections.abc import Mapping, Sequence
from threading import Timer
from typing import TYPE_CHECKING

from traceforge import api
from traceforge.doctor import LACKING
from traceforge.errors import QueryError, UsageError
from traceforge.serve.paging import page_of, records_page

if TYPE_CHECKING:
    from traceforge.store.database import Store

_MOST_ROWS = 5_000
_MOST_LISTED = 50
_LONGEST_QUERY_S = 30.0
NULLS = "null means: not measured, or cannot be known from these traces"

VERDICT = """SELECT kind, confidence, headline, explanation, next_step, delay_share
FROM attribute.verdict WHERE run_id = {run_id}"""
SIGHT = """SELECT subject_kind, cause, pattern, smallest_delay_ns_per_iteration
FROM attribute.sight WHERE run_id = {run_id} ORDER BY ALL"""
OTHER_RUNS = """SELECT r.run_name, v.kind, v.confidence, LEFT(v.headline, 200) AS headline
FROM attribute.verdict AS v JOIN meta.run AS r USING (run_id)
WHERE run_id <> {run_id} AND SPLIT_PART(run_name, ' [', 1) =
  (SELECT SPLIT_PART(run_name, ' [', 1) FROM meta.run WHERE run_id = {run_id})
ORDER BY run_id
LIMIT 8"""
FINDINGS = """SELECT finding_id, confidence, mode, cause, subject_kind, subject, host, summary, next_step,
  delay_ns_per_iteration, delay_low_ns, delay_high_ns, share, gain_if_fixed, pattern, first_iteration, last_iteration,
  p_value, cost_note
FROM attribute.finding WHERE run_id = {run_id} ORDER BY finding_id"""
EVIDENCE = """SELECT * EXCLUDE (run_id) FROM attribute.evidence
WHERE run_id = {run_id} AND finding_id = {finding_id}"""
BOTTLENECK = """SELECT place, bound, is_avoidable, duration_ns_per_iteration, share, basis
FROM attribute.bottleneck WHERE run_id = {run_id} AND rank IS NOT DISTINCT FROM {rank} ORDER BY place"""
BOTTLENECK_RANKS = "SELECT DISTINCT rank FROM attribute.bottleneck WHERE run_id = ? AND rank IS NOT NULL ORDER BY rank"
_QUERIES_OF_LISTS = {"findings": "finding", "operations": "operation", "not_comparable_by": "job"}
OPERATIONS = ("operation", "kernel", "module")
OF_RUN = """FROM (
{query}
)
WHERE run_id = {run_id}"""
RUNS = "SELECT run_name, run_id, world_size FROM meta.run ORDER BY run_id"


class Answerer:
    """Databases by name. Not for several threads at once, as a connection answers one question at a time.

    Args:
        stores: open for reading; SQL of strangers can change no setting of them.
        queries: text of the named queries, by name.
    """

    def __init__(self, stores: "Mapping[str, Store]", queries: Mapping[str, tuple[str, str]]) -> None:
        self._stores, self._queries = stores, queries
        for store in stores.values():
            store.lock_down()

    def databases(self, page: int = 1) -> str:
        """The databases and their runs."""
        rows = [(name, *row) for name, store in self._stores.items() for row in store.rows(RUNS)]
        return page_of(["database", "run", "run_id", "ranks_of_job"], rows, RUNS, page, note=NULLS)

    def verdict(self, database: str | None, run: str | None) -> str:
        """The verdict, the smallest delays that it excludes, and verdicts on other runs of the same files."""
        store, number = self._run(database, run)
        text, others = VERDICT.format(run_id=number), OTHER_RUNS.format(run_id=number)
        sight = store.records(SIGHT.format(run_id=number))
        return records_page(
            store.records(text),
            text,
            what_would_have_been_found=sight,
            sql_of_what_would_have_been_found=SIGHT.format(run_id=number),
            other_runs=store.records(others) or None,
            sql_of_other_runs=others,
            note="cannot_be_known and nothing_significant are answers: do not name a culprit beyond them. " + NULLS,
        )

    def findings(self, database: str | None, run: str | None, page: int) -> str:
        """Findings, the most important first."""
        store, number = self._run(database, run)
        note = (
            f"low confidence: a hint only; no rows: nothing stands out or nothing can be known, ask `verdict`. {NULLS}"
        )
        return self._page(store, FINDINGS.format(run_id=number), page, note=note)

    def evidence(self, finding_id: int, database: str | None, run: str | None, page: int) -> str:
        """Evidence for and against a finding."""
        store, number = self._run(database, run)
        known = [row[0] for row in store.rows(f"SELECT finding_id FROM ({FINDINGS.format(run_id=number)})")]
        if finding_id not in known:
            raise UsageError(f"there is no finding {finding_id}", hint=f"finding_id: {_listed(known)}")
        return self._page(store, EVIDENCE.format(run_id=number, finding_id=int(finding_id)), page, note=NULLS)

    def bottleneck(self, database: str | None, rank: int | None, run: str | None) -> str:
        """The waterfall of the job or of one rank."""
        store, number = self._run(database, run)
        known = [row[0] for row in store.rows(BOTTLENECK_RANKS, [number])]
        if rank is not None and rank not in known:
            raise UsageError(f"there is no waterfall of rank {rank}", hint=f"ranks: {_listed(known)}")
        text = BOTTLENECK.format(run_id=number, rank="NULL" if rank is None else int(rank))
        return self._page(store, text, 1, note=NULLS)

    def operations(self, database: str | None, by: str, run: str | None, page: int) -> str:
        """What takes longest, by kernel, operation or module."""
        if by not in OPERATIONS:
            raise UsageError(f"`{by}` is nothing to sort by", hint=f"choose one of: {', '.join(OPERATIONS)}")
        note = "no rows: no nn.Module was recorded; `doctor` says how. " if by == "module" else ""
        return self._named(f"top_{by}s", database, run, page, note + NULLS)

    def compare(
        self,
        before: str | None,
        after: str | None,
        run_before: str | None,
        run_after: str | None,
        page: int,
        *,
        force: bool,
    ) -> str:
        """What changed from one run to another, each row with whether it is more than scatter."""
        from traceforge.compare.sides import query_text
        from traceforge.report.comparison_text import comparison_document

        store_before, first = self._run(before, run_before, "run_before")
        store_after, second = self._run(after, run_after, "run_after")
        if store_before is store_after and first == second:
            name = self._name(store_after, second)
            raise UsageError(f"run {name} would be compared with itself", hint="`databases` lists databases and runs")
        found = api.compare(store_before, store_after, run_before=run_before, run_after=run_after, force=force)
        document = comparison_document(found)
        lists = {key: value for key, value in document.items() if isinstance(value, list)}
        rows = [
            (entry.get("family", _QUERIES_OF_LISTS.get(key)), key, entry)
            for key, entries in lists.items()
            for entry in entries
        ]
        about = {key: value for key, value in document.items() if key not in lists}
        text = query_text("iteration", second)
        hint = "the tool query_text shows the SQL of each row: compare/ and the row's query; this is compare/iteration"
        return page_of(["query", "list", "row"], rows, text, page, about=about, sql_of_rows=hint, note=NULLS)

    def query_text(self, name: str) -> str:
        """The SQL of a named query, of a part of a comparison, or of what the doctor looks at."""
        from importlib import resources

        if name in self._queries:
            return self._queries[name][1]
        folder = resources.files("traceforge.compare") / "queries"
        known = {f"compare/{file.name.removesuffix('.sql')}": file for file in folder.iterdir()}
        known["doctor/facts"] = resources.files("traceforge.doctor") / "facts.sql"
        if name not in known:
            raise UsageError(f"there is no query `{name}`", hint=f"besides named queries: {', '.join(sorted(known))}")
        return known[name].read_text(encoding="utf-8")

    def doctor(self, database: str | None, run: str | None, page: int) -> str:
        """What these traces cannot tell, and the setting that records it."""
        store, number = self._run(database, run)
        examined = api.doctor(store, run=self._name(store, number))
        found = [one.document() for one in sorted(examined, key=lambda one: one.status not in LACKING)]
        return records_page(found, f"-- the tool query_text shows it: doctor/facts, where $run_id is {number}", page)

    def queries(self, about: str, page: int) -> str:
        """Named queries with what they answer."""
        words = re.compile(rf"(?<![a-z]){re.escape(about.casefold())}")
        rows = [
            (name, purpose)
            for name, (purpose, text) in self._queries.items()
            if words.search(f"{name} {text}".casefold())
        ]
        return page_of(["name", "purpose"], rows, "-- files of traceforge/cli/queries", page)

    def named_query(self, name: str, database: str | None, run: str | None, page: int) -> str:
        """The rows of a named query."""
        if name not in self._queries:
            raise UsageError(f"there is no named query `{name}`", hint="the tool named_queries lists them")
        return self._named(name, database, run, page, NULLS)

    def _named(self, name: str, database: str | None, run: str | None, page: int, note: str) -> str:
        """The rows of a named query, of all runs or of one."""
        text = self._queries[name][1]
        if run is None:
            return self._page(self._store(database), text, page, note=note)
        store, number = self._run(database, run)
        return self._page(store, OF_RUN.format(query=text.strip(), run_id=number), page, note=note)

    def sql(self, query: str, database: str | None, page: int) -> str:
        """The rows of a query; the database is read-only and reaches no file."""
        store = self._store(database)
        store.refuse_other_than_query(query)
        return self._page(store, query, page, note=NULLS)

    def _page(self, store: "Store", text: str, page: int, **beside: object) -> str:
        late = Timer(_LONGEST_QUERY_S, store.interrupt)
        late.start()
        try:
            found = store.preview(text, _MOST_ROWS)
        except QueryError as error:
            if late.finished.is_set():
                what = f"the query was stopped after {_LONGEST_QUERY_S:.0f} s"
                raise QueryError(what, hint="ask for less: one run, one rank, fewer rows to join") from error
            raise
        finally:
            late.cancel()
        return page_of(found.names, found.rows, text, page, further=found.further, **beside)

    def _store(self, database: str | None) -> "Store":
        """The database of this name; none need be named where there is only one."""
        if database is None and len(self._stores) == 1:
            return next(iter(self._stores.values()))
        if database is None:
            raise UsageError("several databases are served", hint=f"name one of: {', '.join(self._stores)}")
        if database not in self._stores:
            raise UsageError(f"there is no database `{database}`", hint=f"databases: {', '.join(self._stores)}")
        return self._stores[database]

    def _run(self, database: str | None, run: str | None, option: str = "run") -> "tuple[Store, int]":
        """A run, and the store that holds it.

        Args:
            option: how the tool calls the name of a run.
        """
        store = self._store(database)
        try:
            return store, api.run_id(store, run)
        except UsageError as error:
            # The command line's hint names an option and a path, of which a caller of tools has neither.
            known = [row[0] for row in store.rows(RUNS)]
            raise UsageError(error.what, hint=f"{option}: {_listed(known)}") from error

    def _name(self, store: "Store", number: int) -> str:
        return str(store.value("SELECT run_name FROM meta.run WHERE run_id = ?", [number]))


def _listed(values: Sequence[object]) -> str:
    shown = ", ".join(str(value) for value in values[:_MOST_LISTED]) or "there are none"
    return shown if len(values) <= _MOST_LISTED else f"{shown} and {len(values) - _MOST_LISTED} more"
