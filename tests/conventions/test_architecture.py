"""ARCHITECTURE.md draws the tree as it is: stages and their order, what each reads and adds, layers, folders."""

import re
import tomllib
from functools import cache

from tests.conventions.test_source_tree import PACKAGE, PYTHON, SQL
from traceforge.api import STAGES

_SCHEMAS = ("raw", "meta", *STAGES)
_READ = re.compile(rf"\b(?:FROM|JOIN)\s+({'|'.join(_SCHEMAS)})\.\w+")
_STAGE = re.compile(r"^ +│ +(\w+) +◄ ([a-z ]+?)  +(\w+(?:, \w+)*)$", re.MULTILINE)


@cache
def page() -> str:
    return (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf-8")


@cache
def drawings() -> list[str]:
    return re.findall(r"<!-- held by [^\n]+ -->\n```\n(.*?)```", page(), re.DOTALL)


def test_stages_are_drawn_in_their_order() -> None:
    assert tuple(stage for stage, _, _ in _STAGE.findall(drawings()[0])) == STAGES


def test_a_stage_reads_the_schemas_that_are_drawn_and_no_other() -> None:
    drawn = {stage: set(schemas.split()) for stage, schemas, _ in _STAGE.findall(drawings()[0])}

    read = {
        stage: {
            schema
            for path in (*PYTHON, *SQL)
            if path.relative_to(PACKAGE).parts[0] == stage
            for schema in _READ.findall(path.read_text(encoding="utf-8"))
        }
        - {stage}
        for stage in STAGES
    }

    assert drawn == read


def test_a_stage_has_the_tables_that_are_drawn() -> None:
    drawn = {
        f"{stage}/{table}.sql" for stage, _, tables in _STAGE.findall(drawings()[0]) for table in tables.split(", ")
    }

    assert drawn - {path.relative_to(PACKAGE).as_posix() for path in SQL} == set()


def test_tables_named_in_the_text_are_there() -> None:
    named = re.findall(rf"`({'|'.join(STAGES)})\.(\w+)`", page())

    assert [f"{stage}.{table}" for stage, table in named if not (PACKAGE / stage / f"{table}.sql").exists()] == []


def test_the_layers_are_those_that_are_checked() -> None:
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (layers,) = [contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers"]

    assert drawings()[1].splitlines() == layers


def test_every_folder_and_module_has_its_word() -> None:
    parts = {path.relative_to(PACKAGE).parts[0] for path in PYTHON} - {"__init__.py", "__main__.py"}

    words = [part if part.endswith(".py") else f"{part}/" for part in sorted(parts)]
    assert [word for word in words if not re.search(rf"\b{re.escape(word)}", page())] == []


def test_folders_that_the_table_names_are_there() -> None:
    rows = re.findall(r"^\| `(\w+)/`.*$", page(), re.MULTILINE)
    inner = [(row[1], row[2]) for row in re.finditer(r"^\| `(\w+)/`[^|]*\|.*\|(.*)\|$", page(), re.MULTILINE)]

    assert [folder for folder in rows if not (PACKAGE / folder).is_dir()] == []
    for folder, plugins in inner:
        assert [name for name in re.findall(r"`(\w+)/`", plugins) if not (PACKAGE / folder / name).is_dir()] == []
