"""The reader of sentences notices what must not stand on a page."""

import pytest

from tests.report.sentences import contradictions, sizes_of_the_first_finding

HEAD = "<dl><div><dt>Ranks</dt><dd>4, all of the job</dd></div></dl><p>waits under 1.39 ms support no finding</p>"


@pytest.mark.parametrize(
    ("text", "kind", "complaint"),
    [
        ("<p>It takes 4.25.</p>", "finding", "no unit"),
        ("<figcaption>No single culprit: it is spread.</figcaption>", "finding", "denies"),
        ("<figcaption>Rank 3 is the last to arrive in 9 of 9.</figcaption>", "nothing_significant", "accuses"),
        ("<p>Only one rank was recorded.</p>", "finding", "against the header"),
        ("<p>3 of 16 ranks are shown.</p>", "finding", "against the header"),
        ("<figcaption>Rank 2 arrives 1.25 ms after the median rank.</figcaption>", "finding", "below resolution"),
        ("<summary>1 input files</summary>", "finding", "no words"),
        ("<table><tr><td>6.57e-05</td></tr></table>", "finding", "no words"),
        ("<p>It is nan.</p>", "finding", "no words"),
    ],
)
def test_what_cannot_stand_is_named(text: str, kind: str, complaint: str) -> None:
    found = contradictions(f'{HEAD}<section id="x">{text}</section>', kind)

    assert len(found) == 1
    assert found[0].startswith(f"x: {complaint}")


@pytest.mark.parametrize(
    "text",
    [
        "<p>It takes 4.25 ms, 4.25 to 5.5 ms, 3.1 % and p = 0.03.</p>",
        "<figcaption>Rank 2 arrives 1.45 ms after the median rank.</figcaption>",
        "<p>3 of 4 ranks are shown.</p>",
        "<pre>SELECT 4.25 + 1e-05</pre>",
        "<p>1 input file, 11.1 iterations, 21 ranks and the ranks 0 and 1 of 2 hosts.</p>",
        "<table><tr><td>4.25</td><td><code>gemm_1e-05</code></td></tr></table>",
    ],
)
def test_what_is_right_is_left_alone(text: str) -> None:
    assert contradictions(f'{HEAD}<section id="x">{text}</section>', "finding") == []


@pytest.mark.parametrize(("marked", "complaints"), [("none marked", 1), ("30 used", 0)])
def test_a_recording_without_steps_has_no_iterations(marked: str, complaints: int) -> None:
    page = f'<dl><dt>Iterations</dt><dd>{marked}</dd></dl><section id="x"><h3>Where a mean step goes</h3></section>'
    assert len(contradictions(page, "cannot_be_known")) == complaints


def test_one_fault_has_one_size() -> None:
    page = (
        "<p>it costs the job 27.1 ms an iteration</p><span>Recoverable per iteration</span><b>27.1 ms</b>"
        '<article id="finding-0"><dt>Recoverable per iteration</dt><dd>25.0 ms (1 to 2 ms)</dd></article>'
    )
    assert sizes_of_the_first_finding(page) == {"27.1 ms", "25.0 ms"}


@pytest.mark.parametrize(
    ("told", "complaints"), [("", 1), ("The job ends no earlier when it is replayed without that.", 0)]
)
def test_a_bar_beyond_what_nobody_costs_needs_its_reason(told: str, complaints: int) -> None:
    page = (
        f'<section id="verdict"><p>Nothing: no rank and no host costs more than 21.6 ms (2 %) an iteration. {told}</p>'
        '</section><section id="waterfall"><table><tr><td>Slow copy, rank 2</td><td>28.8 ms</td></tr>'
        "<tr><td>Slow copy, rank 1</td><td>5.4 ms</td></tr></table></section>"
    )
    assert len(contradictions(page, "nothing_significant")) == complaints


@pytest.mark.parametrize(("paced", "complaints"), [("125 %", 1), ("9.7 %", 0)])
def test_the_unpaced_run_varies_as_the_run_does(paced: str, complaints: int) -> None:
    page = (
        '<section id="strip"><figcaption>Half take less than 804 ms; they vary by 9.1 %.</figcaption></section>'
        f'<section id="pacing"><table><tr><td>none (as recorded)</td><td>no effect</td><td>{paced}</td></tr>'
        "<tr><td>adaptive</td><td>no effect</td><td>130 %</td></tr></table></section>"
    )
    assert len(contradictions(page, "nothing_significant")) == complaints


def test_what_the_verdict_calls_free_costs_the_job_nothing_elsewhere() -> None:
    free = "Rank 1 is held up, 8.65 ms an iteration in the ledger, but the job ends no earlier when it is replayed"
    free += " without that."
    hint = "Rank {} is held up, 25.9 ms in 1 of 3 iterations. It costs the job 8.65 ms an iteration (3.5 %)."
    page = '<section id="verdict"><p>{}</p></section><section id="modes"><p>{}</p></section>'

    (found,) = contradictions(page.format(f"Nobody owns it. {free}", hint.format(1)), "nothing_significant")
    assert found.startswith("modes: costs nothing: Rank 1")
    assert contradictions(page.format(free, hint.format(2)), "nothing_significant") == []
