"""The published schemas of JSON answers: each command's own answers keep them, and nothing stands in one unsaid."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import pytest
from jsonschema import Draft202012Validator

from tests.cli.running import run
from tests.history.made import made
from traceforge.cli.app import app
from traceforge.cli.schema import answer_names, answer_schema
from traceforge.history.addition import add_summaries

Answers = Mapping[str, list[Any]]

# What a name ends in, and the unit that its description must state.
UNITS = {"ns": "ns", "us": "µs", "ms": "ms", "s": "s", "bytes": "bytes", "j": "J", "price": "currency"}


@pytest.fixture(scope="module")
def answers(sample_database: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What every command with JSON answers, by the name of its schema, for three samples and what was made here."""
    folder = tmp_path_factory.mktemp("answers")
    slow, logged, sound = (sample_database(name) for name in ("compute_straggler", "far_nic", "healthy"))
    page = ("-o", folder / "page.html", "--json", "-")
    history, points = folder / "fleet.duckdb", folder / "points.csv"
    # 20 nights of which the last 6 are slower, and one host is accused each time
    add_summaries(history, [made(n, 100 + n % 3 + 30 * (n > 13), guilty="c", hours=2.0) for n in range(20)])
    points.write_text("ranks,throughput\n8,100\n16,190\n32,350\n64,600\n128,900\n")
    edits = ("--what-if", "fix_rank:rank=1", "--what-if", "scale_transfer:factor=0.5")
    limits = ("--max", "iteration_ms=1", "--max", "wait_share=90%", "--max", "finding_confidence=low")
    asked = {
        "check": [("check", slow, *limits, "--json"), ("check", "--list", "--json")],
        "compare": [("compare", logged, slow, "--json", "--force")],
        "doctor": [("doctor", database, "--json") for database in (slow, logged, sound)],
        "forecast": [("forecast", slow, "--json"), ("forecast", "--points", points, "--samples", "1e6", "--json")],
        "history": [("history", "report", history, *page), ("history", "check", history, "--json")],
        "info": [("info", database, "--json") for database in (slow, logged, sound)],
        "replay": [
            ("replay", slow, "--json"),
            ("replay", logged, *edits, "--json"),
            ("replay", slow, "--sweep", "--policy", "bounded_delay", "--json"),
            ("replay", "--list", "--json"),
        ],
        "report": [("report", slow, "--baseline", sound, *page), ("report", sound, *page)],
        "sql": [("sql", slow, "FROM timeline.iteration", "--format", "json"), ("sql", "--list", "--format", "json")],
        "thresholds": [("thresholds", "--json")],
        "top": [("top", slow, "--by", by, "--json") for by in ("kernel", "operation", "kind")],
    }  # fmt: skip
    return {name: [answer_of(*words) for words in commands] for name, commands in asked.items()}


def answer_of(*words: object) -> Any:
    result = run(*words)
    assert result.stdout, result.stderr
    return json.loads(result.stdout)


def valid(name: str, answer: object) -> list[str]:
    """What is wrong with an answer; nothing where it keeps its schema."""
    validator = Draft202012Validator(answer_schema(name))
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(answer)]


@pytest.mark.parametrize("name", answer_names())
def test_a_command_answers_as_its_schema_says(name: str, answers: Answers) -> None:
    assert [valid(name, answer) for answer in answers[name]] == [[] for _ in answers[name]]


@pytest.mark.parametrize("name", answer_names())
def test_a_field_that_nobody_described_breaks_the_schema_wherever_it_stands(name: str, answers: Answers) -> None:
    for answer in answers[name]:
        for place in mappings(answer):
            place["nobody_described_this"] = {}
            assert valid(name, answer)
            del place["nobody_described_this"]


def mappings(value: object) -> Iterator[dict[str, Any]]:
    """All JSON objects within a value, and of a list of like ones the first."""
    if isinstance(value, dict):
        yield value
        for part in list(value.values()):
            yield from mappings(part)
    elif isinstance(value, list) and value:
        yield from mappings(value[0])


def test_every_command_that_answers_in_json_has_a_schema() -> None:
    groups = {group.name: group.typer_instance.registered_commands for group in app.registered_groups}
    commands = {one.callback.__name__: [one] for one in app.registered_commands if one.callback}

    answering = {name for name, own in (groups | commands).items() if any(writes_json(one.callback) for one in own)}

    assert answering == set(answer_names())


def writes_json(command: Any) -> bool:
    """Whether a command has an option that makes it write JSON."""
    for hint in get_type_hints(command, include_extras=True).values():
        kind, option = get_args(hint) if get_origin(hint) is Annotated else (hint, None)
        # Within Annotated, the first name of an option stands where its default would.
        if option is not None and "--json" in [option.default, *(option.param_decls or ())]:
            return True
        if isinstance(kind, type) and issubclass(kind, StrEnum) and "json" in list(kind):
            return True
    return False


@pytest.mark.parametrize("name", answer_names())
def test_every_field_is_described_with_its_unit(name: str) -> None:
    fields = list(described(answer_schema(name)))
    assert fields
    for field, about in fields:
        assert len(about.split()) >= 2, field
        unit = UNITS.get(field.split("_")[-1], "")
        assert re.search(rf"(?<!\w){unit}(?!\w)", about), f"{field} does not say {unit}: {about}"


def described(schema: Any) -> Iterator[tuple[str, str]]:
    """Names of all fields with their descriptions; objects must be closed."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            assert "additionalProperties" in schema
        for field, own in schema.get("properties", {}).items():
            yield field, own["description"]
        for part in schema.values():
            yield from described(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from described(part)


def test_a_printed_schema_is_valid_and_needs_no_other_file() -> None:
    for name in answer_names():
        document = json.loads(run("schema", name).stdout)
        Draft202012Validator.check_schema(document)
        assert set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(document))) <= document.get("$defs", {}).keys()
    assert [line.split()[0] for line in run("schema").stdout.splitlines()] == list(answer_names())


def test_a_command_without_json_is_named_with_those_that_have_it() -> None:
    refused = run("schema", "synth")

    assert refused.returncode == 2
    assert "`synth` does not answer in JSON" in refused.stderr
    assert "report" in refused.stderr
