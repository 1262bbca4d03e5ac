"""The server as an agent meets it: through the client of the SDK, in this process and over its streams."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.conftest import ROOT
from traceforge import api
from traceforge.cli.named_queries import named_queries
from traceforge.serve.answers import Answerer
from traceforge.serve.paging import MOST_BYTES
from traceforge.serve.server import make_server
from traceforge.store.database import Store

# Not loaded here: it takes a second, and all processes of the suite collect this file.
pytestmark = pytest.mark.skipif(find_spec("mcp") is None, reason="needs the extra `mcp`")

SAMPLES = sorted(path.parent.name for path in (ROOT / "sample_traces").glob("*/truth.json"))
Asked = tuple[str, Mapping[str, object]]


def ask(databases: Mapping[str, Path], *questions: Asked, at_once: bool = False) -> list[Any]:
    """What the tools answer: a document each, or an error's text."""
    import mcp

    queries = {query.name: (query.purpose, query.text) for query in named_queries() if query.stage != "history"}
    stores = {name: api.open_store(path) for name, path in databases.items()}

    async def asked() -> list[Any]:
        async with mcp.Client(make_server(Answerer(stores, queries))) as client:
            calls = [client.call_tool(tool, dict(arguments)) for tool, arguments in questions]
            return [_read(one) for one in (await asyncio.gather(*calls) if at_once else [await call for call in calls])]

    try:
        return asyncio.run(asked())
    finally:
        for store in stores.values():
            store.close()


def _read(result: Any) -> Any:
    (content,) = result.content
    assert len(content.text.encode()) <= MOST_BYTES
    return content.text if result.is_error else json.loads(content.text)


@pytest.mark.parametrize("sample", SAMPLES)
def test_of_every_sample_the_tools_say_what_its_database_says(
    sample: str, sample_database: Callable[..., Path]
) -> None:
    path = sample_database(sample)
    own: Asked = ("verdict", {"database": "job"})
    tools = ["findings", "bottleneck", "operations", "doctor"]

    verdict, findings, bottleneck, *_ = ask({"job": path}, own, *((tool, {"database": "job"}) for tool in tools))

    # then each answer is what its own SQL gives
    with api.open_store(path) as store:
        for answer in (verdict, findings, bottleneck):
            found = store.preview(answer["sql"], 1_000)
            assert answer["columns"] == found.names
            assert len(answer["rows"]) <= len(found.rows) == answer["rows_in_all"]
            assert [row[:3] for row in answer["rows"]] == [list(row[:3]) for row in found.rows[: len(answer["rows"])]]
    # and who finds nothing is told what would have been found
    assert verdict["what_would_have_been_found"] is not None
    assert "do not name a culprit" in verdict["note"]


def test_pages_of_sql_follow_one_another_and_end(sample_database: Callable[..., Path]) -> None:
    query = "SELECT range AS n, repeat('x', 100) AS text FROM range(300)"
    path = {"job": sample_database("healthy")}

    (first,) = ask(path, ("sql", {"database": "job", "query": query}))
    rest = ask(path, *(("sql", {"database": "job", "query": query, "page": n}) for n in range(2, first["pages"] + 2)))

    assert [row[0] for page in [first, *rest[:-1]] for row in page["rows"]] == list(range(300))
    assert "there is no page" in rest[-1]


FORBIDDEN = (
    "DELETE FROM meta.run",
    "FROM read_text('/etc/hostname')",
    "SET enable_external_access = true",
    "INSTALL httpfs",
    "ATTACH '/tmp/x.db'",
)


@pytest.mark.parametrize("query", FORBIDDEN)
def test_sql_changes_nothing_and_reaches_nothing(query: str, sample_database: Callable[..., Path]) -> None:
    (answer,) = ask({"job": sample_database("healthy")}, ("sql", {"database": "job", "query": query}))

    assert "the database refused the query" in answer or "only one query that reads is answered" in answer


LEAVES_SOMETHING = (
    "USE memory",
    "ATTACH ':memory:' AS attribute",
    "CREATE TEMP TABLE verdict AS SELECT 1",
    "CREATE TEMP MACRO round(x) AS 0",
    "EXPLAIN ANALYZE CREATE TEMP TABLE verdict AS SELECT 1",
    "SET VARIABLE first_rank = 1",
    "PREPARE later AS SELECT 1",
    "BEGIN",
    "SELECT 1; USE memory",
    "",
)


def test_no_sql_of_one_call_changes_what_another_is_told(sample_database: Callable[..., Path]) -> None:
    own: Asked = ("verdict", {})
    path = {"job": sample_database("healthy")}

    before, *refused, after = ask(path, own, *(("sql", {"query": text}) for text in LEAVES_SOMETHING), own)

    assert ["only one query that reads" in str(answer) for answer in refused] == [True] * len(LEAVES_SOMETHING)
    assert after == before


@pytest.mark.parametrize("query", ["FROM meta.run;", "DESCRIBE meta.run", "SUMMARIZE meta.run", "SHOW ALL TABLES"])
def test_queries_of_every_kind_that_only_read_are_answered(query: str, sample_database: Callable[..., Path]) -> None:
    (answer,) = ask({"job": sample_database("healthy")}, ("sql", {"query": query}))

    assert answer["rows"]


def test_calls_at_once_get_the_answers_of_calls_in_turn(sample_database: Callable[..., Path]) -> None:
    path = {"job": sample_database("compute_straggler")}
    several = (*NEEDS_NO_DATABASE, ("databases", {}), ("bottleneck", {"rank": 2})) * 4

    assert ask(path, *several, at_once=True) == ask(path, *several)


def test_an_argument_that_a_tool_does_not_know_is_an_error(sample_database: Callable[..., Path]) -> None:
    # given findings that, where it were ignored, would seem to be those of rank 2
    (answer,) = ask({"job": sample_database("compute_straggler")}, ("findings", {"rank": 2}))

    assert "rank" in answer
    assert "not permitted" in answer


def test_an_error_is_no_longer_than_an_answer(sample_database: Callable[..., Path]) -> None:
    (answer,) = ask({"job": sample_database("healthy")}, ("sql", {"query": "ä" * 50_000}))

    assert "more characters" in answer


def test_a_query_that_takes_too_long_says_so(
    sample_database: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("traceforge.serve.answers._LONGEST_QUERY_S", 0.2)

    (answer,) = ask(
        {"job": sample_database("healthy")},
        ("sql", {"query": "SELECT COUNT(*) FROM range(10_000_000) a, range(10_000) b"}),
    )

    assert "the query was stopped after" in answer
    assert "hint: ask for less" in answer


def test_comparing_names_the_query_of_each_row(sample_database: Callable[..., Path]) -> None:
    both = {"a": sample_database("healthy"), "b": sample_database("compute_straggler")}

    (answer,) = ask(both, ("compare", {"before": "a", "after": "b"}))

    assert answer["rows"]
    (shown,) = ask(both, ("databases", {}))
    assert [row[:2] for row in shown["rows"]] == [["a", "healthy"], ["b", "compute_straggler"]]
    assert {row[0] for row in answer["rows"]} <= {
        path.stem for path in (ROOT / "traceforge/compare/queries").glob("*.sql")
    }


def test_an_agent_asks_a_process_over_its_streams(sample_database: Callable[..., Path]) -> None:
    import mcp

    path = sample_database("healthy")
    server = mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "traceforge", "mcp", str(path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=str(ROOT),
    )  # fmt: skip

    async def asked() -> tuple[set[str], Any]:
        async with mcp.Client(server) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
            return set(tools), _read(await client.call_tool("verdict", {"database": path.stem}))

    tools, verdict = asyncio.run(asked())

    assert {"databases", "verdict", "findings", "bottleneck", "operations", "compare", "doctor", "sql"} <= tools
    assert verdict["rows"][0][0] == "nothing_significant"


NEEDS_NO_DATABASE: tuple[Asked, ...] = (
    ("verdict", {}),
    ("findings", {}),
    ("bottleneck", {}),
    ("operations", {}),
    ("doctor", {}),
    ("evidence", {"finding_id": 1}),
    ("named_query", {"name": "top_operations"}),
    ("sql", {"query": "SELECT run_name FROM meta.run"}),
)


def test_where_one_database_is_served_none_need_be_named(sample_database: Callable[..., Path]) -> None:
    answers = ask({"job": sample_database("compute_straggler")}, *NEEDS_NO_DATABASE)

    assert [answer for answer in answers if isinstance(answer, str)] == []
    assert answers[-1]["rows"] == [["compute_straggler"]]


def test_a_verdict_tells_of_other_windows_of_the_same_files(
    sample_database: Callable[..., Path], tmp_path: Path
) -> None:
    # given a database of two windows that name different ranks, and of another job
    path = Path(shutil.copy(sample_database("compute_straggler"), tmp_path / "windows.duckdb"))
    run = "* REPLACE ({0} AS run_id, '{1}' AS run_name) FROM meta.run WHERE run_id = 0"
    said = "* REPLACE ({0} AS run_id, 'Rank 3 waits.' AS headline) FROM attribute.verdict WHERE run_id = 0"
    with duckdb.connect(path) as connection:
        for number, name in ((2, "compute_straggler [window 2]"), (3, "another")):
            connection.execute(f"INSERT INTO meta.run BY NAME SELECT {run.format(number, name)}")
            connection.execute(f"INSERT INTO attribute.verdict BY NAME SELECT {said.format(number)}")

    first, alone = ask({"job": path}, ("verdict", {"run": "compute_straggler"}), ("verdict", {"run": "another"}))

    # then the first window's verdict tells of the second, and the other job's of none
    (told,) = first["other_runs"]
    assert (told["run_name"], told["headline"]) == ("compute_straggler [window 2]", "Rank 3 waits.")
    assert "other_runs" not in alone


def test_where_several_are_served_one_must_be_named(sample_database: Callable[..., Path]) -> None:
    both = {"monday": sample_database("healthy"), "tuesday": sample_database("compute_straggler")}

    answers = ask(both, *NEEDS_NO_DATABASE, ("compare", {}))

    assert all("several databases are served" in answer and "monday, tuesday" in answer for answer in answers)


def test_what_is_not_there_is_an_error_with_what_is(sample_database: Callable[..., Path]) -> None:
    """An empty list would read as: finding 99 has no evidence, rank 77 loses nothing."""
    evidence, bottleneck, verdict, compared = ask(
        {"job": sample_database("compute_straggler")},
        ("evidence", {"finding_id": 99}),
        ("bottleneck", {"rank": 77}),
        ("verdict", {"run": "tuesday"}),
        ("compare", {}),
    )

    assert "there is no finding 99" in evidence
    assert "finding_id: 0" in evidence
    assert "rank 77" in bottleneck
    assert "ranks: 0, 1, 2, 3" in bottleneck
    assert "run: compute_straggler" in verdict
    assert "--run" not in verdict
    assert "would be compared with itself" in compared


def test_the_doctor_says_what_is_lacking_first_and_shows_no_program(sample_database: Callable[..., Path]) -> None:
    (answer,) = ask({"job": sample_database("slow_stage")}, ("doctor", {}))

    # given a job without NCCL logs: what they would answer is lacking, the rest is there
    statuses = [row[answer["columns"].index("status")] for row in answer["rows"]]
    assert statuses.index("complete") > max(n for n, status in enumerate(statuses) if status in {"missing", "partial"})
    assert answer["columns"] == ["code", "question", "status", "evidence", "remedy", "setting"]
    assert "<function" not in json.dumps(answer)


def test_the_doctor_names_its_query_and_query_text_shows_it(sample_database: Callable[..., Path]) -> None:
    path = sample_database("slow_stage")
    with api.open_store(path) as store:
        server = Answerer({"job": store}, {})
        document = json.loads(server.doctor(None, None, 1))
        query = server.query_text("doctor/facts").replace("$run_id", "0")

        assert document["sql"] == "-- the tool query_text shows it: doctor/facts, where $run_id is 0"
        assert len(query) < MOST_BYTES
        assert len(store.preview(query, 2).rows) == 1


def test_empty_lists_say_why_they_are_empty(sample_database: Callable[..., Path]) -> None:
    findings, modules = ask({"job": sample_database("healthy")}, ("findings", {}), ("operations", {"by": "module"}))

    assert (findings["rows"], modules["rows"]) == ([], [])
    assert "ask `verdict`" in findings["note"]
    assert "no nn.Module was recorded" in modules["note"]


def test_rows_of_a_query_lead_back_to_the_name_of_their_run(sample_database: Callable[..., Path]) -> None:
    databases, operations = ask({"job": sample_database("healthy")}, ("databases", {}), ("operations", {}))

    (run,) = ({"database": "job", **dict(zip(databases["columns"], row, strict=True))} for row in databases["rows"])
    assert (run["run"], run["run_id"]) == ("healthy", operations["rows"][0][0])


def test_operations_and_named_queries_are_of_one_run_where_it_is_named(tmp_path: Path) -> None:
    # given two runs of a rank, each with more operations than an answer has rows
    path, count = tmp_path / "job.duckdb", 60
    with Store(path) as store:
        for run in ("monday", "tuesday"):
            api.ingest([_steps_of_many_kernels(tmp_path / run, run, count)], store, jobs=1)
    kernels: Asked = ("named_query", {"name": "top_kernels"})

    whole, one, operations, unknown = ask(
        {"job": path},
        kernels,
        ("named_query", {**kernels[1], "run": "tuesday"}),
        ("operations", {"by": "kernel", "run": "tuesday"}),
        ("operations", {"run": "friday"}),
    )

    # then each run has its own share of the rows
    assert whole["rows_in_all"] == 2 * one["rows_in_all"] == 100
    assert all("tuesday" in row[1] for row in one["rows"])
    assert operations["rows"] == one["rows"]
    assert "run: monday, tuesday" in unknown
    # and that is what its own SQL gives
    with api.open_store(path) as store:
        assert len(store.preview(one["sql"], 1_000).rows) == 50


def _steps_of_many_kernels(folder: Path, run: str, count: int) -> Path:
    """A rank whose four steps have so many kernels of different names."""
    events: list[dict[str, object]] = []
    for step in range(4):
        start = 100_000 * step
        events.append({"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": start, "dur": 100_000})
        events += [
            {
                "cat": "kernel",
                "name": f"{run}_{chr(97 + n // 26)}{chr(97 + n % 26)}",
                "ts": start + 1_000 * n,
                "dur": 500 + n,
                "tid": 7,
            }
            for n in range(count)
        ]
    folder.mkdir()
    document = {"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, **event} for event in events]}
    (folder / "rank0.json").write_text(json.dumps({"distributedInfo": {"rank": 0, "world_size": 1}, **document}))
    return folder


def test_runs_of_two_scales_are_compared_where_that_is_wished(sample_database: Callable[..., Path]) -> None:
    jobs = {"small": sample_database("compute_straggler"), "large": sample_database("far_nic")}
    sides = {"before": "small", "after": "large"}

    refused, compared, no_run = ask(
        jobs,
        ("compare", sides),
        ("compare", {**sides, "force": True}),
        ("compare", {**sides, "run_after": "friday"}),
    )

    assert "not comparable by world_size" in refused
    assert "`force`" in refused
    assert compared["rows"]
    assert "run_after: far_nic" in no_run


def test_a_query_is_found_by_its_words_and_not_by_letters_in_them() -> None:
    # given: `nic` also stands inside `communication`
    (answer,) = ask({}, ("named_queries", {"about": "nic"}))

    names = {row[0] for row in answer["rows"]}
    assert {"far_nics", "nic_counters"} <= names
    assert "exposed_communication" not in names
