"""The same generated job gives the same answer, whatever profiler recorded it.

What a format cannot say, of this job: only Kineto's JSON and `.pftrace` state sizes, groups and sequence numbers of
collectives, so that elsewhere bus bandwidths are unknown. rocprofv3 and rocpd do not say from what kind of memory a
copy comes, and RCCL runs every collective in a kernel of one name: what it is stands in calls of the host alone. XPlane
knows no PyTorch operation that starts a collective: what it is stands in the kernel's name alone. None of it changes
who is late.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.given import add_facts, rows_of
from traceforge import api
from traceforge.store.database import Store
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import TRACE_FORMATS, write_scenario
from traceforge.synth.scenario import Scenario

# One host, so that an export of Nsight Systems holds all ranks in one file.
JOB = Scenario(
    "straggler", iterations=12, cluster=Cluster(nodes=1, devices=4), faults=(Injection("compute_straggler", place=2),)
)
# A kernel without the ends of a copy and without which collective it is, which not all formats say.
PLAIN_KERNEL = "REGEXP_REPLACE(REGEXP_REPLACE(kernel, '^ncclDevKernel.*', 'nccl'), '^(Memcpy ....) .*', '\\1')"


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    """The job as each format records it, analysed."""
    folder = tmp_path_factory.mktemp("formats")
    opened = {}
    for name in TRACE_FORMATS:
        write_scenario(JOB, folder / name, trace_format=name)
        opened[name] = Store(folder / f"{name}.db")
        api.ingest([folder / name], opened[name], jobs=1)
    yield opened
    for store in opened.values():
        store.close()


@pytest.mark.parametrize("name", [name for name in TRACE_FORMATS if name != "kineto"])
class TestAnotherFormat:
    """What it says against what PyTorch's own trace of the job says."""

    def test_names_the_same_culprit_at_the_same_cost(self, stores: dict[str, Store], name: str) -> None:
        query = "SELECT mode, cause, subject_kind, subject, delay_ns_per_iteration, confidence FROM attribute.finding"

        (expected,), (found,) = rows_of(stores["kineto"], query), rows_of(stores[name], query)

        assert found[:4] == expected[:4] == ("synchronization_amplification", "slow_compute", "rank", "2")
        assert found[4] == pytest.approx(expected[4], rel=0.001)
        assert found[5] == expected[5]

    @pytest.mark.parametrize(
        "query",
        [
            "SELECT iteration, duration_ns FROM timeline.iteration ORDER BY ALL",
            "SELECT iteration, rank, phase, duration_ns FROM timeline.phase ORDER BY ALL",
            "SELECT op, COUNT(*), SUM(transfer_ns) FROM timeline.collective GROUP BY op ORDER BY op",
            f"SELECT rank, {PLAIN_KERNEL}, SUM(duration_ns) FROM operation.kernel GROUP BY ALL ORDER BY ALL",
        ],
        ids=["iterations", "phases", "collectives", "kernels"],
    )
    def test_sees_the_same_time_to_the_nanosecond(self, stores: dict[str, Store], name: str, query: str) -> None:
        assert rows_of(stores[name], query) == rows_of(stores["kineto"], query)


def test_what_a_format_does_not_say_is_not_known(stores: dict[str, Store]) -> None:
    query = "SELECT COUNT(*) > 0, BOOL_AND(bus_bandwidth_bytes_per_s IS NOT NULL) FROM timeline.collective"

    known = {name for name in TRACE_FORMATS if rows_of(stores[name], query) == [(True, True)]}

    assert known == {"kineto", "pftrace"}


def test_the_perfetto_trace_says_how_collectives_travelled_without_logs(stores: dict[str, Store]) -> None:
    # 64 MB and more, of which the generated job's NCCL sends all by rings
    query = """
    SELECT DISTINCT f.algorithm, f.protocol, f.channel_count
    FROM timeline.collective LEFT JOIN fabric.collective AS f USING (run_id, collective_id)
    """
    assert rows_of(stores["pftrace"], query) == [("ring", "simple", 16)]
    assert rows_of(stores["kineto"], query) == [(None, None, None)]


def test_the_perfetto_trace_numbers_calls_as_the_json_does(stores: dict[str, Store]) -> None:
    query = """
    SELECT s.rank, e.raw_start_ns, c.* EXCLUDE (source_id, event_id)
    FROM raw.collective AS c JOIN raw.event AS e USING (source_id, event_id) JOIN meta.source AS s USING (source_id)
    WHERE e.category = 'cpu_op' ORDER BY ALL
    """
    assert rows_of(stores["pftrace"], query) == rows_of(stores["kineto"], query) != []


def test_the_perfetto_trace_holds_the_events_of_the_json(stores: dict[str, Store]) -> None:
    query = """
    SELECT s.rank, e.category, e.name, e.raw_start_ns, e.duration_ns, e.correlation, e.stream, e.device,
      e.record_function_id, e.external_id
    FROM raw.event AS e JOIN meta.source AS s USING (source_id) WHERE e.phase = 'X' ORDER BY ALL
    """
    assert rows_of(stores["pftrace"], query) == rows_of(stores["kineto"], query) != []


def test_a_file_of_all_ranks_is_one_file_and_a_source_a_rank(stores: dict[str, Store], tmp_path: Path) -> None:
    paths = rows_of(stores["nsys"], "SELECT path, rank FROM meta.source ORDER BY source_id")

    assert [path.rpartition("/")[2] for path, _ in paths] == [f"device {n}, process {2000 + n}" for n in range(4)]
    assert rows_of(stores["nsys"], "SELECT rank FROM align.rank ORDER BY rank") == [(0,), (1,), (2,), (3,)]
    assert "rank_from_device" in [code for (code,) in rows_of(stores["nsys"], "SELECT code FROM meta.issue")]


def test_each_part_is_known_again_by_itself_in_a_file_and_in_a_folder(stores: dict[str, Store], tmp_path: Path) -> None:
    # given the report of four ranks, read into a folder, too
    write_scenario(JOB, tmp_path / "nsys", trace_format="nsys")
    (report,) = (tmp_path / "nsys").glob("*.sqlite")

    with Store(f"{tmp_path / 'job'}/") as folder:
        first, again = (add_facts(folder, report, run_name="straggler") for _ in range(2))

        # then it is one file to its user, and not read a second time
        assert (first.read, first.unchanged) == ((report,), ())
        assert (again.read, again.unchanged) == ((), (report,))
        # and four sources, whose rows are those of a database that is a file
        assert rows_of(folder, "SELECT COUNT(DISTINCT content_hash) FROM meta.source") == [(4,)]
        counted = "SELECT source_id, COUNT(*), SUM(duration_ns) FROM raw.occurrence GROUP BY ALL ORDER BY ALL"
        assert rows_of(folder, counted) == rows_of(stores["nsys"], counted)


def _verdict_of_two_profilers(folder: Path, other: str) -> tuple[object, ...]:
    """Kind, headline, explanation and next step of two hosts: ranks 0 and 1 of Kineto, 2 and 3 of another format."""
    job = replace(JOB, iterations=4, cluster=Cluster(nodes=2, devices=2))
    write_scenario(job, folder, left_out=frozenset({2, 3}))
    write_scenario(job, folder, left_out=frozenset({0, 1}), trace_format=other)
    with Store(None, is_kept=False) as store:
        api.ingest([folder], store, jobs=1)
        (verdict,) = rows_of(store, "SELECT kind, headline, explanation, next_step FROM attribute.verdict")
    return tuple(verdict)


def test_a_job_of_two_profilers_is_refused_with_the_reason(tmp_path: Path) -> None:
    kind, headline, _, step = _verdict_of_two_profilers(tmp_path, "nsys")

    assert kind == "cannot_be_known"
    assert headline == (
        "Ranks 0, 1 were recorded by PyTorch's profiler and ranks 2, 3 were recorded by Nsight Systems: their calls "
        "cannot be matched, so who waits for whom cannot be known."
    )
    assert "one profiler" in str(step)


def test_a_job_of_two_profilers_whose_calls_match_is_joined_and_that_is_said(tmp_path: Path) -> None:
    kind, _, explanation, _ = _verdict_of_two_profilers(tmp_path, "pftrace")

    assert kind == "finding"
    assert str(explanation).startswith(
        "Ranks 0, 1 were recorded by PyTorch's profiler and ranks 2, 3 were recorded by PyTorch's CUPTI observer; "
        "their calls were matched, so they are compared as one job."
    )
