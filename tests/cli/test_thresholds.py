"""`traceforge thresholds`: the limits behind every answer, for people and for programs."""

import json

from tests.cli.running import run
from traceforge.thresholds import all_thresholds
from traceforge.thresholds import compare as thresholds


def test_every_limit_is_printed_with_its_unit_and_what_it_decides() -> None:
    printed = run("thresholds")
    assert printed.returncode == 0
    for threshold in all_thresholds():
        assert f"{threshold.name} = " in printed.stdout
        assert threshold.meaning in printed.stdout


def test_large_limits_are_written_out() -> None:
    assert "e+" not in run("thresholds").stdout


def test_json_has_the_same_limits() -> None:
    document = json.loads(run("thresholds", "--json").stdout)
    values = {entry["name"]: entry["value"] for entry in document["thresholds"]}
    assert values["compare.LEAST_SHARE"] == thresholds.LEAST_SHARE
    assert len(values) == len(all_thresholds())
