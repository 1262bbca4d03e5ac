"""The page as a whole: order, completeness, sizes, and what it says when something is absent."""

import json
import re

import pytest

from traceforge.errors import UsageError
from traceforge.report import Report, build_report
from traceforge.report.cost import Price
from traceforge.store.database import Store

from .tables import Job, borrowed, empty_store, store_of

_TARGET_BYTES = 2_000_000
_MOST_MARKS = 10_000

# What is wrong, how sure, where the time goes, who is late, why, and only then what could be done.
READING_ORDER = (
    "verdict", "losses", "assurance", "timeline", "modes", "waterfall", "lateness", "collectives", "pacing", "scaling",
    "trust", "appendix",
)  # fmt: skip
# The first screen, as far as the tabs.
TABS = '<nav class="tabs"'


def report_of(store: Store) -> Report:
    return build_report(store, run_id=1, versions={"traceforge": "0.1.0"}, command="traceforge report job42.duckdb")


def texts(html: str) -> str:
    """The page's words without scripts, styles and tags."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", bare).split()).replace("\N{NO-BREAK SPACE}", " ")


def figure_data(html: str) -> dict[str, dict[str, object]]:
    found = re.findall(r'<script type="application/json" id="data-([\w-]+)">(.*?)</script>', html, flags=re.DOTALL)
    return {name: json.loads(text) for name, text in found}


def test_the_verdict_comes_before_every_other_section(late_report: Report) -> None:
    sections = re.findall(r'<section id="(\w+)"', late_report.html)
    assert sections[:3] == ["verdict", "losses", "assurance"]
    told = [name for name in sections if name in READING_ORDER]
    assert told == list(READING_ORDER)
    assert sections[-1] == "appendix"


def test_the_verdict_gives_number_interval_confidence_and_next_step(late_report: Report) -> None:
    verdict = texts(late_report.html.partition(TABS)[0])
    for words in (
        "Rank 2 computes longer",
        "Recoverable per iteration",
        "Confidence high",
        "GPU-hours lost per day",
        "Next step",
        "Evidence for and against",
    ):
        assert words in verdict


def test_further_findings_and_hints_are_told_apart(late_report: Report) -> None:
    # a finding beside the verdict's is told with it in a line; a hint stands folded with its failure mode
    assert "Rank 1 collects garbage" in texts(late_report.html.partition(TABS)[0])
    modes = late_report.html.partition('<section id="modes"')[2].partition("</section>")[0]
    hints = re.findall(r"<details class=\"card hint\".*?</details>", modes, flags=re.DOTALL)
    assert ["Rank 3 waits for its input" in hint for hint in hints] == [True]
    cards = re.findall(r"<article class=\"card\".*?</article>", modes, flags=re.DOTALL)
    assert len(cards) == 2


def test_every_failure_mode_is_named_found_or_not(late_report: Report) -> None:
    modes = texts(late_report.html.partition('<section id="modes"')[2].partition("</section>")[0])
    assert "Synchronisation amplification found, confidence high" in modes
    assert "Fabric contention no delay of this kind" in modes
    assert "no problem found" not in modes
    assert "Logs of NCCL (paths, NICs) and counters" in modes


def test_cost_is_told_in_gpu_hours_and_with_a_price_in_money(late_job: Store) -> None:
    # given 4 GPUs, of whose 96 GPU-hours a day a share is lost
    row = late_job.query(
        "SELECT delay_ns_per_iteration / (SELECT AVG(duration_ns) FROM timeline.iteration WHERE NOT is_warmup)"
        " FROM attribute.finding WHERE finding_id = 0"
    ).item()

    # when one costs 2.50 an hour
    priced = build_report(late_job, run_id=1, versions={}, command=None, price=Price(2.5, "EUR"))

    # then the verdict says both
    verdict = priced.html.partition(TABS)[0]
    hours, money = (
        float(re.findall(rf'<data value="([\d.]+)" data-unit="{unit}">', verdict)[0]) for unit in ("gpu_hours", "money")
    )
    assert hours == pytest.approx(96 * row)
    assert money == pytest.approx(96 * row * 2.5)
    assert "at 2.5 EUR a GPU-hour" in texts(verdict)


def test_a_job_without_devices_loses_hours_of_ranks() -> None:
    store = store_of(Job(iterations=12))
    store.execute("UPDATE align.rank SET has_device = false")
    with store:
        verdict = build_report(store, run_id=1, versions={}, command=None).html.partition(TABS)[0]

    assert "Rank-hours lost per day" in texts(verdict)
    assert "all 4 ranks spend 96.0 rank\N{NON-BREAKING HYPHEN}hours" in texts(verdict)
    assert "GPU" not in texts(verdict)


def test_every_figure_has_a_caption_in_words_and_its_numbers(late_report: Report) -> None:
    figures = re.findall(r"<figure\b.*?</figure>", late_report.html, flags=re.DOTALL)
    assert len(figures) >= 9
    for figure in figures:
        caption = re.search(r"<figcaption[^>]*>(.*?)</figcaption>", figure, flags=re.DOTALL)
        assert caption is not None
        assert len(caption[1].split()) >= 6
        assert '<table class="rows">' in figure
        assert 'href="#query-' in figure


def test_captions_state_what_the_tables_hold(late_report: Report) -> None:
    page = texts(late_report.html)
    assert "Rank 2 is the last to arrive in 7 of 7 iterations" in page
    assert re.search(r"Iteration 3: rank 2 reaches a collective [\d.]+ ms after the median of the other ranks", page)
    assert "remains unexplained" in page
    assert "Neither of the 2 replayed policies is known to help this run" in page


def test_a_healthy_run_gets_an_answer_not_an_empty_page() -> None:
    with borrowed(Job(late_rank=None)) as store:
        report = report_of(store)
    page = texts(report.html)
    assert "Nothing significant" in page
    assert "No failure mode exceeds the scatter between iterations." in page
    assert "No rank is consistently late" in page
    assert report.summary["verdict"]["kind"] == "nothing_significant"  # type: ignore[index]


@pytest.mark.parametrize(
    ("confidence", "delay_share", "is_unsure"),
    [("high", 0.02, False), ("low", 0.02, True), ("high", 0.3, True), ("high", None, False)],
)
def test_where_nothing_is_certain_or_much_is_lost_the_verdict_is_not_green(
    confidence: str, delay_share: float | None, *, is_unsure: bool
) -> None:
    with borrowed(Job(late_rank=None)) as store:
        store.execute("UPDATE attribute.verdict SET confidence = ?, delay_share = ?", [confidence, delay_share])
        report = report_of(store)
    state = "unsure" if is_unsure else "nothing_significant"
    assert f'class="verdict verdict-{state}"' in report.html
    assert report.verdict_state == state


def test_what_all_ranks_lose_alike_is_not_green_and_has_a_label_of_its_own() -> None:
    # given a verdict that names no culprit and a loss of all ranks
    with borrowed(Job(late_rank=None)) as store:
        store.execute("UPDATE attribute.verdict SET confidence = 'high', is_common = true")
        report = report_of(store)

    assert report.verdict_state == "unsure"
    assert 'class="verdict verdict-unsure"' in report.html
    page = texts(report.html)
    assert "All ranks alike" in page
    assert "that nothing else stands out" in page


def test_an_uneven_pipeline_is_labelled_so_and_the_confidence_is_of_what_else_there_may_be() -> None:
    # given a verdict that names stages, and that little can be said of others
    with borrowed(Job(late_rank=None)) as store:
        store.execute(
            "UPDATE attribute.verdict SET headline = 'Stage 1 is slow.', confidence = 'low', is_unbalanced = true"
        )
        report = report_of(store)

    page = texts(report.html)
    assert "Uneven pipeline" in page
    assert "No certain culprit" not in page
    assert report.verdict_lines[0] == "VERDICT (confidence low that nothing else stands out): Stage 1 is slow."


def test_a_long_explanation_is_cut_where_a_sentence_ends() -> None:
    sentence = "It takes ten milliseconds longer than usual in each iteration."
    with borrowed(Job(late_rank=None)) as store:
        store.execute("UPDATE attribute.verdict SET explanation = ?", [" ".join([sentence] * 60)])
        report = report_of(store)

    # 38 sentences of 62 letters and a space are 2,393 letters
    assert texts(report.html).count(sentence) == 38


def test_a_run_without_any_rows_says_what_is_missing_in_every_section() -> None:
    with empty_store() as store:
        report = report_of(store)
    sections = re.findall(r'<section id="(\w+)".*?</section>', report.html, flags=re.DOTALL)
    missing = dict(
        re.findall(
            r'<section id="(\w+)" class="missing".{,300}?<p>(.*?)</p>',
            report.html,
            flags=re.DOTALL,
        )
    )
    assert set(sections) - set(missing) == {"verdict", "trust", "appendix"}
    assert all(len(why) < 200 for why in missing.values())
    page = texts(report.html)
    assert "Nothing can be said about this run" in page
    assert "traceforge doctor DIR" in page
    assert report.verdict_lines[0] == "VERDICT: nothing can be said about this run"
    assert len(report.html) < 200_000, "a page without charts carries no library that draws them"
    assert "Charts need JavaScript" not in page


def _without(*tables: str) -> Store:
    store = store_of(Job())
    for table in tables:
        store.execute(f"DELETE FROM {table}")
    return store


_COLLECTIVES = ("timeline.collective", "timeline.arrival", "timeline.communicator")
_FORECAST = ("forecast.scale", "forecast.missing_measurement", "forecast.point")
_ITERATIONS = ("timeline.iteration", "timeline.rank_iteration", "timeline.phase", "timeline.segment")


@pytest.mark.parametrize(
    ("gone", "said", "advice"),
    [
        (_ITERATIONS, "no training step could be found in the traces", "prof.step()"),
        (_COLLECTIVES, "no collective call could be matched across the ranks", "ProfilerActivity.CUDA"),
        (("replay.outcome",), "No pacing policy was replayed", ""),
        (_FORECAST, "Nothing can be said about other numbers of ranks", ""),
        (("attribute.excess", "attribute.delay"), "No delay could be attributed", ""),
        (("timeline.segment",), "No iteration can be drawn", ""),
        (("timeline.phase", "timeline.rank_iteration"), "No iteration could be broken down into phases", ""),
        (("attribute.verdict", "attribute.finding", "attribute.evidence"), "The analysis gave no verdict", ""),
        (("align.clock",), "No clock was compared", ""),
        (("meta.issue",), "No row was skipped, repaired or guessed", ""),
    ],
)
def test_an_empty_table_is_named_with_the_setting_that_would_fill_it(
    gone: tuple[str, ...], said: str, advice: str
) -> None:
    with _without(*gone) as store:
        page = texts(report_of(store).html)
    assert said in page
    assert advice in page


def test_a_single_rank_is_told_that_lateness_is_a_comparison() -> None:
    with borrowed(Job(ranks=1, late_rank=None)) as store:
        page = texts(report_of(store).html)
    assert "only rank 0 was recorded" in page
    assert "worker_name=f'rank{rank}'" in page.replace("&#39;", "'")


def test_ranks_without_a_common_clock_are_named() -> None:
    with borrowed(Job()) as store:
        store.execute(
            "UPDATE align.clock SET status = 'unaligned', offset_ns = NULL, residual_ns = NULL WHERE rank = 3"
        )
        page = texts(report_of(store).html)
    assert "Rank 3 could not be aligned to the common clock" in page
    assert "not aligned" in page


def test_only_the_asked_run_is_shown() -> None:
    with borrowed(Job()) as store:
        store.execute("INSERT INTO meta.run VALUES (2, 'another', 4)")
        report = build_report(store, run_id=2, versions={}, command=None)
    assert "Rank 2 computes longer" not in report.html
    with borrowed(Job()) as store, pytest.raises(UsageError, match="holds no run 7"):
        build_report(store, run_id=7, versions={}, command=None)


def test_the_same_tables_give_the_same_bytes(late_report: Report) -> None:
    with borrowed(Job()) as store:
        again = report_of(store)
    assert again == late_report


def test_the_summary_is_small_json_and_rounded(late_report: Report) -> None:
    text = json.dumps(late_report.summary)
    assert len(text) < 5_000
    assert late_report.summary["schema_version"] == 1
    assert set(late_report.summary) >= {
        "verdict",
        "findings",
        "iterations",
        "phase_shares",
        "trust",
        "issues",
        "replay",
    }
    assert all(len(number) <= 6 for number in re.findall(r"\.(\d+)", text))
    shares = late_report.summary["phase_shares"]
    assert isinstance(shares, dict)
    assert sum(shares.values()) == pytest.approx(1, abs=0.001)


def test_the_terminal_gets_few_plain_lines(late_report: Report) -> None:
    lines = late_report.verdict_lines
    assert lines[0].startswith("VERDICT (confidence high): Rank 2")
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 100
    assert any(line.startswith("  next:") for line in lines)
    assert any(line.startswith("  trust:") for line in lines)


def test_the_appendix_shows_every_query_with_the_run_filled_in(late_report: Report) -> None:
    shown = re.findall(r'<details id="query-([\w-]+)">', late_report.html)
    linked = re.findall(r'href="#query-([\w-]+)"', late_report.html)
    assert set(linked) <= set(shown)
    assert "$run_id" not in late_report.html
    assert "WHERE run_id = 1" in late_report.html


def test_a_shown_query_runs_as_it_stands(late_job: Store, late_report: Report) -> None:
    from html import unescape

    for text in re.findall(r'<details id="query-[\w-]+">.*?<code>(.*?)</code>', late_report.html, flags=re.DOTALL):
        late_job.query(unescape(text))


def _marks(html: str) -> int:
    """Rows of the largest table that any chart draws at once."""
    largest = 0
    for figure in figure_data(html).values():
        panels = figure.get("panels", [])
        assert isinstance(panels, list)
        for panel in panels:
            rows = [_length(next(iter(data.values()), [])) for data in panel["data"].values()]
            largest = max(largest, sum(rows))
    return largest


def _length(column: object) -> int:
    return len(column["codes"]) if isinstance(column, dict) else len(column) if isinstance(column, list) else 0


@pytest.mark.parametrize(("ranks", "pieces"), [(64, 80), (512, 4)])
def test_large_runs_stay_small_and_say_what_was_thinned(ranks: int, pieces: int) -> None:
    with borrowed(Job(ranks=ranks, iterations=50, late_rank=37, ranks_per_host=8, pieces=pieces)) as store:
        report = report_of(store)
    assert len(report.html.encode()) < _TARGET_BYTES
    assert _marks(report.html) <= _MOST_MARKS
    page = texts(report.html)
    assert "Rank 37 is the last to arrive in 47 of 49 iterations" in page
    if ranks == 64:
        assert "Other ranks and iterations are drawn in steps of" in page
    else:
        assert "A cell holds 8 ranks and shows the latest of them" in page
        assert "share a row; the row shows the one that waits least" in page


def test_every_cell_opens_its_rank_in_its_iteration(late_report: Report) -> None:
    opens = figure_data(late_report.html)["lateness"]["drill_down"]
    assert isinstance(opens, dict)
    assert opens["iterations"] == list(range(1, 8))
    assert opens["ranks"] == [0, 1, 2, 3]


def test_with_many_iterations_a_cell_opens_the_longest_of_its_column() -> None:
    with borrowed(Job(ranks=3, iterations=400, late_rank=1, warmup=0)) as store:
        store.execute("UPDATE timeline.iteration SET duration_ns = 2 * duration_ns WHERE iteration = 333")
        report = report_of(store)
    opens = figure_data(report.html)["lateness"]["drill_down"]
    assert isinstance(opens, dict)
    at = next(place for place, name in enumerate(opens["columns"]) if "333" in name or "332" in name)
    assert opens["iterations"][at] == 333
