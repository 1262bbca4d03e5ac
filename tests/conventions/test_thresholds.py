"""Numbers that decide what is said stand in `traceforge.thresholds`, and nowhere else."""

import ast
import re
from collections.abc import Iterator
from fnmatch import fnmatch

from tests.conventions.literals import Literal, of_python, of_sql
from tests.conventions.test_source_tree import PACKAGE, PYTHON, SQL, tree
from traceforge.thresholds import all_thresholds

JUDGING = (
    "align",
    "timeline",
    "operation",
    "fabric",
    "graph",
    "replay",
    "attribute",
    "forecast",
    "compare",
    "check",
    "doctor",
    "report",
    "history",
)

# What is a number but no judgement: (pattern of the file, pattern of the name) -> what it is.
NO_JUDGEMENT = {
    ("align/clock.py", "_unaligned"): "how many ranks a message names",
    ("align/rank_trace.py", "MOST_DIGITS"): "what fits a column",
    ("align/rank_list.py", "*"): "what fits a column, and no job has more ranks",
    ("align/rank_batches.py", "_MOST_EVENTS"): "how much is worked on at once",
    ("graph/arrival.py", "_MOST_ARRIVALS"): "how much is worked on at once",
    ("timeline/segment.py", "_MOST_SEGMENTS"): "how much is worked on at once",
    ("attribute/host_pace.py", "_MOST_RANKS"): "how much is read",
    ("timeline/layers.py", "_MOST_*"): "beyond which sorting is cheaper",
    ("attribute/findings/finding_cost.py", "_HALVINGS"): "how far a search goes",
    ("graph/absent_rank.py", "_MOST_RANGES"): "how many ranges a message names",
    ("graph/work.py", "_MOST_SEGMENTS"): "how much is worked on at once",
    ("*", "_*AT_ONCE"): "how much is worked on at once",
    ("align/rank.py", "_NAMED_FILES"): "how many files a message names",
    ("align/collective_matching.py", "_SAMPLE"): "how many collectives are looked at",
    ("align/collective_matching.py", "_REPEATS_BITS"): "layout of a key",
    ("align/sequence_alignment.py", "_*_COMPARISONS"): "how much is tried",
    ("report/charts/*", "*"): "layout of a chart",
    ("graph/arrival.py", "_STREAMS"): "how far back is searched",
    ("graph/baseline.py", "(_*"): "an order, not an amount",
    ("graph/operation_matching.py", "_*"): "how far is searched",
    ("timeline/other_schedule.py", "_CHUNKS"): "examples",
    ("align/trace_ranks.py", "LONGEST_RANK"): "digits of a number that may be a rank",
    ("attribute/ledger/propagation.py", "_FEW_APART"): "which of two ways to the same amounts is the shorter",
    ("attribute/findings/chance.py", "_*"): "how finely is searched",
    ("attribute/findings/sight.py", "_[SE]*"): "sizes and lengths that are tried",
    ("attribute/findings/sight.py", "_DRAWS"): "draws of a test",
    ("attribute/findings/search.py", "_*"): "how much is tried",
    ("attribute/findings/subjects.py", "_SHOWN"): "how many are shown",
    ("attribute/stage_text.py", "_SHOWN"): "how many are shown",
    ("attribute/mixed_formats.py", "_MOST_RANKS"): "how many a sentence names",
    ("attribute/verdict_state.sql", ""): "decimals of a share as pages say it",
    ("timeline/link_load.sql", ""): "the quartile that a column shows",
    ("replay/calibration/*", "_*S"): "how long is searched, and of how many blocks",
    ("replay/calibration/*", "_GRID"): "how finely is searched",
    ("replay/calibration/measurement.py", "_SHORTEST_BLOCK"): "design of a statistic",
    ("replay/calibration/measurement.py", "first_stage"): "no division by zero",
    ("replay/edits/fix_rank.py", "_TRIED"): "how many are shown",
    ("replay/evidence.py", "_LEAST"): "no work takes less than no time",
    ("replay/outcome.py", "_*"): "size of a batch; the columns p95 and p99",
    ("replay/reference.py", "*"): "size of a sample, which decides nothing but speed",
    ("replay/replay_input.py", "_DRAWS"): "draws of a bootstrap",
    ("report/context.py", "Limits.*"): "how much a page may hold",
    ("report/page.py", "_L*"): "how much a page may hold",
    ("report/*", "_MOST_*"): "how much a table or a list shows",
    ("report/*", "*_COLUMNS"): "longest text of a cell",
    ("report/sections/*", "SECTION"): "place on the page",
    ("report/formatting.py", "*"): "digits and lengths of texts",
    ("report/machine_readable.py", "*"): "digits and lengths of lists",
    ("report/terminal.py", "_*"): "layout of the terminal",
    ("report/drawing.py", "_WIDTH"): "layout of a chart",
    ("report/palette.py", "DIVERGING_STEPS"): "number of colours",
    ("report/diagnosis.py", "*"): "lengths of texts",
    ("report/sections/appendix.py", "_HASH_LETTERS"): "length of a text",
    ("report/sections/collectives.sql", ""): "quantiles that the columns are said to be",
    ("report/sections/fabric_measured.sql", ""): "quantiles that the columns are said to be",
    ("report/timeline/*", "_*"): "how much and how finely a picture shows",
    ("report/sections/lateness.py", "_because"): "a unit, less what rounding may take",
    ("report/sections/waterfall.*", "*"): "how many bars are drawn, and how far the axis reaches",
    ("operation/work.py", "*"): "arithmetic: closed forms, and the places of arguments",
    ("operation/*_work.py", "*"): "arithmetic: closed forms, and the places of arguments",
    ("operation/inputs.py", "_*BYTES"): "sizes of element types",
    ("operation/kernel.py", "_LARGEST"): "what fits a column",
    ("attribute/finding_function.py", "_LONGEST_NAME"): "length of a text",
    ("attribute/finding_operation.py", "_LONGEST_NAME"): "length of a text",
    ("operation/kernel_name.py", "*"): "length of a text, and how many are remembered",
    ("check/metrics.py", "_ENTRIES"): "quantiles that metrics are named after",
    ("doctor/checks.py", "_MAX_LISTED"): "how many a message names",
    ("fabric/communicator_match.py", "_MAX_*"): "how far is searched",
    ("fabric/finding.py", "_MAX_LISTED"): "how many a finding names",
    ("fabric/hang*.py", "_MOST_*"): "how many a sentence names",
    ("attribute/graph_text.py", "_LONGEST"): "length of a text",
    ("graph/call_words.py", "_LONGEST"): "length of a text",
    ("fabric/hang.py", "_LONGEST_OP"): "length of a text",
    ("fabric/telemetry_lag.py", "_*"): "how much is tried at once, and how finely; zones that there are",
    ("fabric/load.sql", ""): "quantiles that the columns are said to be",
    ("timeline/mesh.py", "_MOST_*"): "how many are tried together",
    ("fabric/nic_distance.sql", ""): "digits of an address; NCCL's own definition of PIX",
    ("replay/all_reduce.py", "NVLINK_*"): "what a link is taken to do where none was measured",
    ("forecast/goodput.py", "*"): "assumptions that a user may set, from published field data",
    ("forecast/fitting.py", "_*"): "rounds and guards of a solver",
    ("forecast/models/*", "_*"): "grid and guards of a solver",
    ("forecast/what_if.py", "_split"): "no division by zero",
    ("forecast/what_if.py", "_row"): "how many cases make an interval by themselves",
    ("forecast/restart.py", "_EARLIEST_NS"): "earliest date that a clock may show",
    ("forecast/*", "_DRAWS"): "draws of a bootstrap",
    ("forecast/*", "_FEWEST_DRAWS"): "draws of a bootstrap",
    ("forecast/*", "_MOST_*"): "how much is worked on at once",
    ("forecast/tail.py", "fit_tail"): "how few draws may do",
    ("forecast/outlook.py", "_TAIL"): "scales that the table is made for",
    ("forecast/scale.py", "_LINE_POINTS"): "points of a drawn line",
    ("forecast/stability.py", "_PER"): "a unit: per hundred iterations",
    ("history/dashboard.py", "(_WIDTH*"): "layout of a page",
    ("history/*", "_MOST_*"): "how much a page shows",
    ("history/*", "_NAME*"): "how many a sentence names, and lengths of texts",
    ("history/queries/run.sql", ""): "earliest date that a clock may show",
    ("replay/policies/*", "POLICY"): "parameters of a policy that a user may set",
    ("replay/edits/*", "EDIT"): "parameters of a change of the job that a user may set",
}


def literals() -> Iterator[Literal]:
    """Every number of the folders that judge, wherever one may."""
    for path in (*PYTHON, *SQL):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(tuple(f"{folder}/" for folder in JUDGING)):
            yield from (of_python if path.suffix == ".py" else of_sql)(name, path.read_text(encoding="utf-8"))


def _excused(literal: Literal) -> tuple[str, str] | None:
    return next(
        (rule for rule in NO_JUDGEMENT if fnmatch(literal.file, rule[0]) and fnmatch(literal.owner, rule[1])), None
    )


def test_no_number_judges_outside_the_thresholds() -> None:
    assert sorted(literal for literal in literals() if _excused(literal) is None) == []


def test_every_exception_still_excuses_a_number() -> None:
    assert NO_JUDGEMENT.keys() - {_excused(literal) for literal in literals()} == set()


def test_numbers_in_python_are_found_where_they_judge() -> None:
    text = """
LEAST = 0.05
LIMITS = {"spread": (-1e9, 3)}
class Rule:
    share: float = 0.25
def is_clear(share: float, floor: float = 0.1, *, rounds: int = 12) -> bool:
    mean = 7 * share + numbers[4]
    return 0.3 < mean < 10 * LEAST and max(share, 5) and np.quantile(shares, 0.9) != "6"
"""

    found = [(literal.owner, literal.value) for literal in of_python("a.py", text)]

    assert sorted(found) == sorted([
        ("LEAST", 0.05), ("LIMITS", 3), ("Rule.share", 0.25), ("is_clear", 0.1), ("is_clear", 12), ("is_clear", 0.3),
        ("is_clear", 10), ("is_clear", 5), ("is_clear", 0.9),
    ])  # fmt: skip


def test_what_is_plain_arithmetic_or_a_unit_is_no_judgement() -> None:
    text = "HALF = 0.5\nNS = 1_000_000_000\ndef f(a, n=1):\n    return a[7] > 0 and 100 * a < 2 * n and a != -1\n"

    assert list(of_python("a.py", text.replace("100", "1e3"))) == []
    assert [literal.value for literal in of_python("a.py", text)] == [100]


def test_numbers_in_sql_are_found_where_they_judge() -> None:
    text = """-- More than 9 of them are > 8.
SELECT a, 100 * a AS percent, LEAST(a, 40) AS shown, QUANTILE_DISC(a, 0.25) AS usual, QUANTILE_DISC(a, 0.95) AS p95_ns,
  FORMAT('{} > 7', a), a > 3 * b AS is_slow, c > 2 * d AS is_late, (a >> 8) & 255 AS low, f >= 2 AS is_pair
FROM t WHERE a BETWEEN 4 AND 6 AND c IN ('5') AND d / 1e6 < 0.6
ORDER BY 1, 2"""

    assert [(literal.line, literal.value) for literal in of_sql("a.sql", text)] == [
        (2, 40), (2, 0.25), (3, 3),
        (3, 2), (4, 4), (4, 6), (4, 0.6)
    ]  # fmt: skip


def test_every_threshold_is_used_by_its_stage() -> None:
    used = set(_in_python()) | set(_in_sql())

    assert [limit.name for limit in all_thresholds() if (limit.name.partition(".")[0], limit.name) not in used] == []


def test_sql_names_only_thresholds_that_there_are() -> None:
    assert {name for _, name in _in_sql()} - {limit.name for limit in all_thresholds()} == set()


def _in_python() -> Iterator[tuple[str, str]]:
    """Folder and threshold of each use such as `thresholds.LEAST_SHARE`, by what `thresholds` is imported as."""
    for path in PYTHON:
        modules = {
            alias.asname or alias.name: alias.name
            for node in ast.walk(tree(path))
            if isinstance(node, ast.ImportFrom) and node.module == "traceforge.thresholds"
            for alias in node.names
        }
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                yield path.relative_to(PACKAGE).parts[0], f"{modules[node.value.id]}.{node.attr}"


def _in_sql() -> Iterator[tuple[str, str]]:
    """Folder and threshold of each name such as 'fabric.FAR_DISTANCE' by which a query reads `meta.threshold`."""
    for path in (*SQL, *PYTHON):
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"'([a-z_]+\.[A-Z][A-Z0-9_]+)'", text) if "meta.threshold" in text else ():
            yield path.relative_to(PACKAGE).parts[0], name
