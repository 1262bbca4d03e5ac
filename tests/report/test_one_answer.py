"""Captions beside a finding: none names another culprit, and shares of another whole say of what they are."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest

from tests.report.tables import Job, borrowed
from traceforge import api
from traceforge.report import build_report
from traceforge.store.database import Store


def words_of(database: Path) -> str:
    with Store(database, read_only=True) as store:
        return text_of(api.report(store).html)


def text_of(page: str) -> str:
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    text = unescape(re.sub(r"<[^>]+>", " ", shown))
    return " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())


@pytest.mark.parametrize(
    ("sample", "said"),
    [
        ("slow_stage", "the finding rests on what its own ranks do, not on who is last"),
        ("far_nic", "the finding is about transfers after all have arrived, not about who is last"),
    ],
)
def test_who_is_last_is_no_second_culprit(sample_database: Callable[..., Path], sample: str, said: str) -> None:
    assert said in words_of(sample_database(sample))


def test_a_blamed_stage_owns_the_lost_time_and_no_trend_is_drawn_through_a_step(
    sample_database: Callable[..., Path],
) -> None:
    words = words_of(sample_database("slow_stage"))

    assert "the largest owner, stage 2 (slow compute), has" in words
    assert "No trend is told: the run changes at once, at iteration 13." in words
    assert "per 100 iterations" not in words
    assert "Shares are of a rank's own step, 74.6 ms on average" in words


def test_where_nobody_is_to_blame_all_parts_of_the_page_say_so(sample_database: Callable[..., Path]) -> None:
    words = words_of(sample_database("healthy"))

    # then the verdict, the strip and the waterfall name the same cause first, and sizes bound what was not found
    assert "spread over ranks and causes (slow compute" in words
    assert "nobody owns more than" in words
    assert "The largest part is slow compute, 2.69 ms over several ranks." in words
    assert (
        "no rank costs more than 5.11 ms (5.0 %) an iteration, no episode of slow transfers more than 2.56 ms" in words
    )
    assert (
        "cost more than 2.56 ms an iteration on all transfers (in a quarter of the iterations) or 5.11 ms an iteration"
        " on one rank" in words
    )


def test_who_owns_most_of_the_strip_is_named_though_nobody_is_to_blame() -> None:
    # given a job without a finding, in which all lost time is rank 2's
    with borrowed(Job()) as store:
        store.execute("DELETE FROM attribute.finding")
        words = text_of(build_report(store, run_id=1, versions={}, command=None).html)

    assert "the largest owner, rank 2 (slow compute), has" in words
    assert "nobody owns more than" not in words
