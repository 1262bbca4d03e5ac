"""Results of a benchmark as they are kept. In: what was measured, and the command. Out: a JSON file, also printed."""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any


def keep_results(path: Path, command: str, packages: Sequence[str], found: Mapping[str, Any]) -> None:
    """Write results with the command, the machine, its load and versions of packages before them."""
    results = {
        "command": command,
        "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()},
        "load_average_at_the_end": round(os.getloadavg()[0], 1),
        "versions": {name: version(name) for name in packages},
        **found,
    }
    path.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    print(path.read_text(encoding="utf-8"))
