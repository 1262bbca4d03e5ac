"""Warm-up counts in no mean of the page."""

from tests.report.tables import MS, Job, store_of
from traceforge.report import build_report
from traceforge.store.database import Store

_EXCESS = "INSERT INTO attribute.excess (run_id, iteration, reference_ns, excess_ns) VALUES (1, 0, ?, ?)"
_DELAY = (
    "INSERT INTO attribute.delay (run_id, iteration, rank, mode, cause, delay_ns)"
    " VALUES (1, 0, 1, 'fabric_contention', 'slow_transfer', ?)"
)


def sections_of(store: Store) -> list[str]:
    html = build_report(store, run_id=1, versions={}, command=None).html
    return [html.partition(f'<section id="{name}"')[2].partition("</section>")[0] for name in ("modes", "waterfall")]


def test_what_the_first_iteration_lost_is_no_part_of_a_mean_iteration() -> None:
    # given a job of which the first iteration is warm-up
    with store_of(Job()) as store:
        usual = sections_of(store)

        # when that iteration has a ledger as well, and lost a second
        store.execute(_EXCESS, [100 * MS, 1_000 * MS])
        store.execute(_DELAY, [1_000 * MS])

        # then failure modes and lost time read as before
        assert all(usual)
        assert sections_of(store) == usual
