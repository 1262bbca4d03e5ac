"""The archive for Perfetto: untouched traces, one clock, and tracks of what was found."""

import errno
import gzip
import json
import os
import shutil
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from traceforge import api
from traceforge.errors import InputUnusableError, UsageError
from traceforge.export.perfetto import MANIFEST, TRACKS, export_perfetto
from traceforge.store.database import Store
from traceforge.synth.clocks import ClockErrors
from traceforge.synth.cluster import Cluster
from traceforge.synth.fault import Injection
from traceforge.synth.folder import write_scenario
from traceforge.synth.scenario import Scenario


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Store]]:
    """Two hosts whose clocks are some 50 ms apart; rank 3 computes slowly."""
    folder = tmp_path_factory.mktemp("job")
    clocks = ClockErrors(50_000_000, 0, 20_000)
    slow = Injection("compute_straggler", 3, 0.3)
    write_scenario(Scenario("job", 4, 6, cluster=Cluster(2, 2), clocks=clocks, faults=(slow,)), folder / "traces")
    with Store(folder / "job.duckdb") as store:
        api.ingest([folder / "traces"], store, run="../<b>", jobs=1)
        yield folder, store


@pytest.fixture(scope="module")
def members(job: tuple[Path, Store]) -> dict[str, bytes]:
    folder, store = job
    made = export_perfetto(store, 0, [], folder / "out.tar")
    assert (made.ranks, made.missing, made.unaligned) == ([0, 1, 2, 3], [], [])
    with tarfile.open(folder / "out.tar") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}  # type: ignore[union-attr]


def files_of(members: dict[str, bytes]) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads(members[MANIFEST])["perfetto_manifest"]["files"]
    return files


def tracks_of(members: dict[str, bytes]) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(members[TRACKS])["traceEvents"]
    return events


def test_traces_are_in_it_byte_by_byte(job: tuple[Path, Store], members: dict[str, bytes]) -> None:
    for rank in range(4):
        original = (job[0] / "traces" / f"rank{rank}.pt.trace.json.gz").read_bytes()
        assert members[f"rank{rank:05d}.pt.trace.json"] == gzip.decompress(original)


def test_the_manifest_is_of_the_form_that_perfetto_reads(members: dict[str, bytes]) -> None:
    manifest = json.loads(members[MANIFEST])

    # its reader knows it by its first key, and refuses other versions, unknown references and fractions
    assert members[MANIFEST].replace(b" ", b"").replace(b"\n", b"").startswith(b'{"perfetto_manifest"')
    assert manifest["perfetto_manifest"]["version"] == 1
    paths = [file["path"] for file in files_of(members)]
    assert sorted(paths) == sorted(set(members) - {MANIFEST})
    for file in files_of(members):
        assert file["machine"]["name"]
        assert type(file.get("clocks", {}).get("offset_ns", 0)) is int
        assert file.get("clocks", {}).get("sync_to", {"file": TRACKS}) == {"file": TRACKS}
    assert all(isinstance(value, str) for value in manifest["perfetto_manifest"]["attributes"].values())


def test_the_manifest_breaks_no_rule_of_the_published_format(members: dict[str, bytes]) -> None:
    # https://perfetto.dev/docs/reference/perfetto-manifest, "Errors": each of these would fail the whole import
    files = files_of(members)
    assert {key for file in files for key in file} <= {"path", "machine", "clocks"}
    assert len({file["machine"]["name"] for file in files}) == len(files)
    for clocks in [file["clocks"] for file in files if "clocks" in file]:
        # without `clock`, a file is pinned to the private timeline of one that has no clock either
        assert clocks.keys() == {"sync_to", "offset_ns"}
        assert clocks["sync_to"]["file"] in {file["path"] for file in files}
        assert -(2**63) < clocks["offset_ns"] < 2**63
    attributes = json.loads(members[MANIFEST])["perfetto_manifest"]["attributes"]
    assert all(key and isinstance(value, str) for key, value in attributes.items())


def test_every_member_is_a_chrome_trace_by_itself(members: dict[str, bytes]) -> None:
    for name in members.keys() - {MANIFEST}:
        events = json.loads(members[name])["traceEvents"]
        assert events
        assert all(isinstance(event["ph"], str) and isinstance(event["name"], str) for event in events)
        assert all(isinstance(event["ts"], int | float) for event in events if event["ph"] != "M")
        assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")


def test_moved_as_the_manifest_says_all_ranks_leave_a_collective_together(members: dict[str, bytes]) -> None:
    # given clocks 50 ms apart
    ends: dict[int, list[float]] = defaultdict(list)
    for file in files_of(members)[1:]:
        events = json.loads(members[file["path"]])["traceEvents"]
        own = [e for e in events if e.get("cat") == "kernel" and "Seq" in e["args"]]
        for event in own:
            ends[event["args"]["Seq"]].append((event["ts"] + event["dur"]) * 1e3 + file["clocks"]["offset_ns"])
        assert min(event["ts"] * 1e3 for event in events if event["ph"] == "X") + file["clocks"]["offset_ns"] >= 0

    # then their ends lie within some µs of one another
    assert len(ends) == 12
    assert max(max(own) - min(own) for own in ends.values()) < 30_000


def test_findings_and_iterations_are_slices_and_lateness_a_counter(members: dict[str, bytes]) -> None:
    events = tracks_of(members)

    names = [event["name"] for event in events if event["ph"] == "X"]
    assert sum(name.startswith("iteration ") for name in names) == 6
    assert any(name.startswith("Rank 3 computes longer") for name in names)
    late = {event["name"]: event["args"]["ms"] for event in events if event["ph"] == "C"}
    assert max(late, key=lambda name: late[name]) == "lateness of rank 3 (ms)"


def test_arrows_lead_from_the_last_arriver_into_the_waits_of_others(members: dict[str, bytes]) -> None:
    events = tracks_of(members)
    lanes = {
        e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == 2
    }
    starts = {event["id"]: lanes[event["tid"]] for event in events if event["ph"] == "s"}
    ends = {event["id"]: lanes[event["tid"]] for event in events if event["ph"] == "f"}

    assert starts.keys() == ends.keys()
    from_rank_3 = [number for number, lane in starts.items() if lane.startswith("rank 3,")]
    assert len(from_rank_3) > len(starts) / 2
    assert not any(ends[number].startswith("rank 3,") for number in from_rank_3)


def test_nothing_overlaps_on_a_track(members: dict[str, bytes]) -> None:
    until: dict[tuple[int, int], float] = defaultdict(float)
    slices = [event for event in tracks_of(members) if event["ph"] == "X"]
    for event in sorted(slices, key=lambda event: event["ts"]):
        track = event["pid"], event["tid"]
        assert event["ts"] >= until[track] - 1e-3
        until[track] = event["ts"] + event["dur"]


def test_hostile_names_make_no_path(members: dict[str, bytes]) -> None:
    assert all("/" not in name and ".." not in name for name in members)


def test_traces_are_known_again_by_hash_wherever_they_lie(job: tuple[Path, Store], tmp_path: Path) -> None:
    folder, store = job
    for rank in range(3):
        shutil.copy(folder / "traces" / f"rank{rank}.pt.trace.json.gz", tmp_path / f"moved{rank}")
    shutil.copy(folder / "traces" / "rank0.pt.trace.json.gz", tmp_path / "rank3.pt.trace.json.gz")

    made = export_perfetto(store, 0, [tmp_path], tmp_path / "out.tar")

    assert made.ranks == [0, 1, 2]
    assert [Path(path).name for path in made.missing] == ["rank3.pt.trace.json.gz"]


def test_without_its_traces_there_is_no_archive(job: tuple[Path, Store], tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    with pytest.raises(InputUnusableError, match="none of the run's 4 traces is found"):
        export_perfetto(job[1], 0, [tmp_path], tmp_path / "out.tar")

    assert not (tmp_path / "out.tar").exists()


def test_an_archive_is_not_written_over(job: tuple[Path, Store], tmp_path: Path) -> None:
    (tmp_path / "out.tar").write_text("precious")
    with pytest.raises(UsageError, match="exists already"):
        export_perfetto(job[1], 0, [], tmp_path / "out.tar")


def test_of_an_archive_for_which_the_disk_is_too_small_nothing_is_left(
    job: tuple[Path, Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a disk with room for the first two members
    real, written = tarfile.TarFile.addfile, list[str]()

    def full(archive: tarfile.TarFile, member: tarfile.TarInfo, content: Any) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(member.name)
        real(archive, member, content)

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)

    with pytest.raises(InputUnusableError, match="cannot be written: No space left on device"):
        export_perfetto(job[1], 0, [], tmp_path / "made" / "out.tar")

    assert len(written) == 2
    assert not list((tmp_path / "made").iterdir())
