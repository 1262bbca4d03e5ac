"""`python -m tests.bench.report_large`: CPU time and size of reports on large runs; writes results/report_large.json.

Databases are filled directly, ingest takes no part. The peer, on the same machine in the same run, is the ready-made
way to a page that opens offline: Altair's own `to_html(inline=True)` of one chart, the cells of the overview.
"""

import json
import re
from pathlib import Path
from time import process_time

from tests.report.tables import Job, store_of
from traceforge.report import build_report
from traceforge.report.bundle import vega_script

RESULTS = Path(__file__).parent / "results" / "report_large.json"
SIZES = ((64, 50, 40), (512, 50, 10), (1_000, 50, 10))
_CELLS = 6_250


def measure(ranks: int, iterations: int, pieces: int) -> dict[str, float]:
    """CPU seconds of one report, what part of it is the drawing library, and the size of the page."""
    with store_of(Job(ranks, iterations, late_rank=37, ranks_per_host=8, pieces=pieces)) as store:
        segments = store.query("SELECT COUNT(*) FROM timeline.segment").item()
        vega_script.cache_clear()
        start = process_time()
        report = build_report(store, run_id=1, versions={}, command=None)
        whole = process_time() - start
        start = process_time()
        build_report(store, run_id=1, versions={}, command=None)
        again = process_time() - start
    return {
        "ranks": ranks, "iterations": iterations, "intervals_in_database": segments, "cpu_s": round(whole, 2),
        "cpu_s_without_drawing_library": round(again, 2), "html_mb": round(len(report.html.encode()) / 1e6, 2),
        "thinned": bool(re.search(r"shows the latest of them|longest of neighbours|Drawn in steps", report.html)),
    }  # fmt: skip


def peer() -> float:
    """CPU seconds of one chart by Altair alone, with the drawing library inlined."""
    import altair as alt

    rows = [{"rank": n // 50, "iteration": n % 50, "late": (n * 7919) % 97} for n in range(_CELLS)]
    alt.data_transformers.disable_max_rows()
    start = process_time()
    alt.Chart(alt.Data(values=rows)).mark_rect().encode(x="iteration:O", y="rank:O", color="late:Q").to_html(
        inline=True
    )
    return process_time() - start


def main() -> None:
    """Measure, print and keep."""
    one_chart = peer()
    reports = [measure(*size) for size in SIZES]
    for report in reports:
        report["times_one_inlined_altair_chart"] = round(report["cpu_s"] / one_chart, 2)
    text = json.dumps({"one_inlined_altair_chart_cpu_s": round(one_chart, 2), "reports": reports}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
