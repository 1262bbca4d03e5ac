"""It works offline: no command asks for an address or opens a connection, not even with hostile input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

# Ends at the first question for an address and the first connection, from whatever library; reports what it was.
WATCHED = """
import json, os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "urllib.Request"):
        os.write(2, f"asked the network: {event} {arguments}".encode())
        os._exit(99)

sys.addaudithook(watch)
from traceforge.__main__ import main
codes = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["traceforge", *words]
    try:
        main()
        codes.append(0)
    except SystemExit as ending:
        codes.append(ending.code)
sys.exit(f"codes: {codes}")
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


def watched(program: str, *commands: list[object]) -> subprocess.CompletedProcess[str]:
    """Commands one after the other in a process, which ends with 99 where one asks the network."""
    words = json.dumps([list(map(str, command)) for command in commands])
    started = [sys.executable, "-c", program, words]
    return subprocess.run(started, capture_output=True, text=True, cwd=ROOT, timeout=600, check=False)


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

    done = watched(WATCHED, *commands)

    assert "asked the network" not in done.stderr
    assert done.stderr.splitlines()[-1] == "codes: [0, 0, 0, 0, 2, 0, 0]"


def test_the_watch_sees_a_connection() -> None:
    asked = WATCHED.replace(
        "from traceforge.__main__ import main",
        "import socket; main = lambda: socket.create_connection(('127.0.0.1', 9))",
    )

    done = watched(asked, [])

    assert done.returncode == 99
    assert "asked the network: socket." in done.stderr
