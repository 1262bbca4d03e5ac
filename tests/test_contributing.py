"""The examples of CONTRIBUTING.md, followed to the letter in a copy of the tree: one file (and one row) is enough."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

_STEP = re.compile(r"<!-- (file|insert into) (\S+)(?: above (.+?))? -->\n```\w+\n(.*?)\n```\n", re.DOTALL)
STEPS = _STEP.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))


def ended(folder: Path, *command: object) -> str:
    """What a command prints that ends well."""
    # A process of its own: not one of several that share databases of samples.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(list(map(str, command)), cwd=folder, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what examples touch, with every file and row of CONTRIBUTING.md in its place."""
    folder = tmp_path_factory.mktemp("contributing")
    for name in ("traceforge", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "sample_traces"):
        (folder / name).symlink_to(ROOT / name)
    for action, path, place, text in STEPS:
        target = folder / path
        target.parent.mkdir(exist_ok=True)
        assert target.exists() == (action == "insert into"), f"{path} of CONTRIBUTING.md"
        target.write_text(f"{text}\n" if action == "file" else _inserted(target.read_text(), text, place))
    return folder


def _inserted(before: str, text: str, place: str) -> str:
    """The row and an empty line, above the comment and the head of the row that holds the line `place`."""
    at = before.rindex("\n\n", 0, before.index(f"\n{place}\n")) + 2
    return f"{before[:at]}{text}\n\n{before[at:]}"


def test_each_way_to_extend_is_one_file_and_its_test() -> None:
    files = [path for action, path, _, _ in STEPS if action == "file"]
    rows = [path for action, path, _, _ in STEPS if action != "file"]

    assert [str(Path(path).parent) for path in files if not path.startswith("tests/")] == [
        "traceforge/attribute/causes", "traceforge/cli/queries", "traceforge/report/sections", "traceforge/sources",
        "traceforge/sources", "traceforge/forecast/models",
    ]  # fmt: skip
    assert len([path for path in files if path.startswith("tests/")]) == 6
    assert rows == ["traceforge/vocabulary.toml"]


def test_the_examples_work_when_followed(tree: Path) -> None:
    tests = [path for _, path, _, _ in STEPS if path.startswith("tests/")]

    said = ended(tree, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *tests)

    assert all(f"PASSED {path}" in said for path in tests), said


def test_the_examples_are_written_as_the_tree_is(tree: Path) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    code = [path for _, path, _, _ in STEPS if path.endswith(".py")]

    ended(tree, ruff, "check", "--no-cache", *code)
    ended(tree, ruff, "format", "--check", "--no-cache", *code)
