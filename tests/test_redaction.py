"""Redaction: names go, the same name always to the same replacement; everything else stays, the verdict above all."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT
from tests.report.tables import Job, store_of
from traceforge import api
from traceforge.redaction import Redaction
from traceforge.report import build_report
from traceforge.store.database import Store

SECRET = Redaction(
    {
        "host": ["gpu-a10.corp.example", "gpu-a2.corp.example", "node"],
        "path": ["exp7/rank0.json", "exp7/gpu-a2_17.json.gz"],
        "folder": ["exp7"],
        "job": ["llama-next"],
        "user": ["mallory"],
    }
)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("rank 3 on gpu-a2.corp.example.", "rank 3 on host-1."),
        ("gpu-a2 and gpu-a10: slow", "host-1 and host-2: slow"),  # natural order; with or without domain
        ("gpu-a2-ib0 mlx5_0", "host-1-ib0 mlx5_0"),
        ("exp7/rank0.json:12 and rank0.json", "path-2:12 and path-2"),
        ("exp7/other.log", "path-3"),  # a path never seen before is one all the same
        ("/home/mallory/x set by mallory", "path-4 set by user-1"),
        ("10.1.2.3<0>", "address-1<0>"),
        ("llama-next in exp7", "job-1 in folder-1"),
        ("one node of 4, 9.5 GB/s, NCCL 2.19.3", "one node of 4, 9.5 GB/s, NCCL 2.19.3"),
        ("bounded_delay:window=3,gain=0.5", "bounded_delay:window=3,gain=0.5"),
    ],
)
def test_names_are_replaced_wherever_they_stand_and_nothing_else(text: str, redacted: str) -> None:
    assert SECRET.text(text) == redacted
    assert SECRET.text(text) == redacted


def test_a_message_that_is_quoted_goes_whole_the_longest_first() -> None:
    quoting = Redaction({"message": ["lost peer", "lost peer of mallory"]})

    assert quoting.text("1 warning on rank 0: lost peer of mallory") == "1 warning on rank 0: message-2"


def test_a_name_that_is_a_common_word_goes_where_it_is_the_whole_value() -> None:
    assert SECRET.name("host", "node") == "host-3"


def test_the_host_in_settings_of_a_change_is_a_name_and_the_rest_is_not() -> None:
    # given what replay.what_if and replay.outcome write, of which one names a host
    hosts = Redaction({"host": ["window", "rack7-gpu"]})
    frame = pl.DataFrame({"parameters": ["host=rack7-gpu", "window=4,gain=0.5", None]})

    assert hosts.frame(frame)["parameters"].to_list() == ["host=host-1", "window=4,gain=0.5", None]


def test_a_redacted_report_tells_the_same_without_any_name() -> None:
    # given a job whose names are nobody's business, in tables and in sentences
    job = Job(run_name="llama-next", host="gpu-a", path="/home/mallory/exp7/rank", ranks_per_host=1)
    with store_of(job) as store:
        store.execute("UPDATE attribute.evidence SET statement = statement || ' Seen on gpu-a2 by llama-next.'")
        store.execute("UPDATE meta.issue SET first_at = '/home/mallory/exp7/rank1.json.gz: event 17'")
        plain = build_report(store, run_id=1, versions={}, command="traceforge report exp7")

        # when the report is redacted
        made = build_report(
            store, run_id=1, versions={}, command="traceforge report exp7", redaction=Redaction.of(store)
        )

    # then no name is in the page, the summary or the terminal's lines
    told = made.html + json.dumps(made.summary) + "\n".join(made.verdict_lines)
    for name in ("llama-next", "gpu-a", "mallory", "exp7", "rank1.json"):
        assert name in plain.html
        assert name not in told

    # and what it says is the same
    assert made.summary["verdict"] == plain.summary["verdict"]
    assert made.summary["findings"] == plain.summary["findings"]
    assert "Seen on host-3 by job-1." in made.html
    assert made.html.count("path-2") >= 2  # in the list of inputs, and where its issue is told


def test_a_redacted_sample_holds_none_of_its_names(tmp_path: Path) -> None:
    # given a recorded run under a name of its own
    folder = tmp_path / "secretproject"
    folder.mkdir()
    for file in sorted((ROOT / "sample_traces" / "compute_straggler").glob("*.gz")):
        (folder / file.name).write_bytes(file.read_bytes())
    with Store(None, threads=1) as store:
        api.ingest([folder], store, jobs=1)
        plain, redacted = api.report(store), api.report(store, redact=True)
        fragment = api.report(store, redact=True, as_fragment=True)
        hosts = store.query("SELECT DISTINCT host FROM align.clock")["host"].to_list()
        paths = store.query("SELECT path FROM meta.source")["path"].to_list()

    # then neither hosts, nor files, nor the job can be read from what is passed on
    told = redacted.html + json.dumps(redacted.summary) + redacted.markdown + fragment.html
    told += "\n".join(redacted.verdict_lines)
    assert [
        name for name in [*hosts, *paths, *(Path(path).name for path in paths), "secretproject"] if name in told
    ] == []
    assert redacted.summary["verdict"] == plain.summary["verdict"]
