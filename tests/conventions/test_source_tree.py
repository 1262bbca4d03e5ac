"""The tree keeps its own rules: sizes, names, documentation, mirrors. Each test names every offender at once."""

import ast
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import ROOT

PACKAGE = ROOT / "traceforge"
PYTHON = sorted(PACKAGE.rglob("*.py"))
SQL = sorted(PACKAGE.rglob("*.sql"))


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@pytest.mark.skipif(not shutil.which("git") or not (ROOT / ".git").exists(), reason="no checkout")
def test_the_root_holds_what_a_reader_expects_there_and_nothing_left_behind() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {".ci", "reports", "sample_traces", "skills", "tests", "traceforge"}
    pages = {"ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md"}
    settings = {".gitignore", "MANIFEST.in", "action.yml", "pyproject.toml", "setup.py"}

    assert {name.split("/")[0] for name in listed.splitlines()} == folders | pages | settings


def test_no_file_is_longer_than_400_lines() -> None:
    files = [*PYTHON, *SQL, *(ROOT / "tests").rglob("*.py")]
    lengths = {relative(path): len(path.read_text(encoding="utf-8").splitlines()) for path in files}

    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    lengths = {
        f"{relative(path)}:{node.name}": (node.end_lineno or node.lineno) - node.lineno
        for path in PYTHON
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: length for name, length in lengths.items() if length > 60} == {}


def test_every_module_says_what_it_is() -> None:
    documentation = {relative(path): ast.get_docstring(tree(path)) or "" for path in PYTHON}

    assert [name for name, text in documentation.items() if len(text) <= 20] == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty_names = re.compile(r"^(utils?|helpers?|misc|common|manager|base)$")
    assert not [relative(path) for path in PYTHON if empty_names.match(path.stem)]


def test_the_readme_commands_are_there() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for marker in ("main", "test"):
        assert len(re.findall(rf"<!-- {marker} command -->\n```sh\n.+\n```", readme)) == 1


def test_the_lowest_versions_are_those_of_the_package() -> None:
    # given the lower bounds of pyproject.toml
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    bounds = dict(re.findall(r'"([a-z0-9-]+)>=([0-9.]+),<', text.split("[project.scripts]")[0]))

    # then the file the oldest-versions run installs from names each with the same numbers
    lowest = dict(
        re.findall(r"^([a-z0-9-]+)==([0-9.]+)$", (ROOT / "tests/lowest-versions.txt").read_text(), re.MULTILINE)
    )
    for name, version in lowest.items():
        assert version.startswith(bounds[name]), (name, version, bounds[name])
    assert {"polars", "duckdb", "altair", "numpy", "msgspec", "isal", "vl-convert-python"} <= lowest.keys()
