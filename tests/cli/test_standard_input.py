"""A tar or a trace from another program is read from standard input, and leaves nothing behind."""

import gzip
import io
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.cli.running import run
from tests.conftest import ROOT
from traceforge.store.database import Store

SAMPLE = ROOT / "sample_traces" / "compute_straggler"


def piped(data: bytes, *arguments: object, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "traceforge", *map(str, arguments)],
        input=data, capture_output=True, cwd=ROOT, timeout=300, check=False,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "TMPDIR": str(folder), "HOME": str(folder)},
    )  # fmt: skip


def test_a_tar_is_read_and_its_copy_is_gone(tmp_path: Path) -> None:
    # given two ranks in a tar
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path in sorted(SAMPLE.glob("*.pt.trace.json.gz"))[:2]:
            archive.add(path, f"job/{path.name}")
    (temporary := tmp_path / "temporary").mkdir()

    done = piped(packed.getvalue(), "ingest", "-", "--db", tmp_path / "job.db", folder=temporary)

    assert done.returncode == 0, done.stderr.decode()
    with Store(tmp_path / "job.db", read_only=True) as store:
        paths = store.query("SELECT path FROM meta.source ORDER BY path")["path"]
    assert [path.split("/")[:3] for path in paths] == [["standard-input", "traces", "job"]] * 2
    assert not list(temporary.glob("traceforge-*"))


def test_a_trace_alone_is_enough_for_top() -> None:
    trace = gzip.decompress((SAMPLE / "rank0.pt.trace.json.gz").read_bytes())

    done = run("top", "-", stdin=trace.decode())

    assert done.returncode == 0, done.stderr
    assert "calls" in done.stdout


def test_nothing_is_said_to_be_nothing(tmp_path: Path) -> None:
    done = piped(b"", "ingest", "-", "--db", tmp_path / "job.db", folder=tmp_path)

    assert done.returncode == 3
    assert b"standard input: nothing came" in done.stderr
    assert not (tmp_path / "job.db").exists()
