"""It works offline: no command asks for an address or opens a connection, not even with hostile input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Ends at the first question for an address and the first connection, from whatever library; reports what it was.
WATCHED = """
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"):
        os.write(2, f"asked the network: {event} {arguments}".encode())
        os._exit(99)

sys.addaudithook(watch)
from traceforge.__main__ import main
main()
"""
URL = "http://192.0.2.1/x"


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    """Two ranks whose names are addresses."""
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in range(2):
        events = [
            {"ph": "X", "cat": "cpu_op", "name": name, "pid": URL, "tid": 1, "ts": ts, "dur": 5}
            for ts, name in enumerate((f"ProfilerStep#{rank}", URL, f'<img src="{URL}">', f"read_text('{URL}')"))
        ]
        trace = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))
    return folder


def watched(*words: object) -> subprocess.CompletedProcess[str]:
    """A command whose questions to the network end it with 99."""
    command = [sys.executable, "-c", WATCHED, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)


def test_no_command_asks_the_network(traces: Path, tmp_path: Path) -> None:
    database = tmp_path / "job.duckdb"
    commands: list[list[object]] = [
        ["ingest", traces, "--db", database, "--jobs", 1],
        ["report", database, "-o", tmp_path / "report.html"],
        ["info", database],
        ["doctor", database],
        ["sql", database, f"FROM read_csv('{URL}')"],
        ["export", "perfetto", database, "-o", tmp_path / "timeline.json.gz"],
        ["sql", database, "SELECT COUNT(*) FROM raw.event"],
    ]

    done = [watched(*words) for words in commands]

    assert "asked the network" not in "".join(one.stderr for one in done)
    assert [one.returncode for one in done] == [0, 0, 0, 0, 2, 0, 0]


def test_the_watch_sees_a_connection() -> None:
    asked = WATCHED.replace(
        "from traceforge.__main__ import main",
        "import socket; main = lambda: socket.create_connection(('127.0.0.1', 9))",
    )

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 99
    assert "asked the network: socket." in done.stderr
