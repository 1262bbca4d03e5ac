"""Who does what longer: losses drawn by hand."""

import pytest

from tests.attribute.findings.runs import found_in, judged_run, lost, subjects


@pytest.mark.parametrize(
    ("longer", "slowest"),
    [(20, 1), (19, 0)],  # a fifth of the ranks' own work, and less
)
def test_who_is_slow_shows_in_hosts_where_these_explain_what_devices_wait(longer: float, slowest: int) -> None:
    # given rank 0, whose device waits longest for its host, and rank 1, whose host takes longer
    losses = lost({"late_launch": [[100.0, 40.0]] * 3})
    losses.host_ns[..., 0] = [0.0, longer]

    assert losses.slower([0]).mean(axis=0).argmax() == slowest


def test_of_hosts_that_were_not_looked_at_their_devices_tell() -> None:
    assert lost({"late_launch": [[100.0, 40.0]] * 3}).slower([0]).tolist() == [[100.0, 40.0]] * 3


def test_ranks_whose_hosts_are_slow_alike_are_named_together_though_one_of_them_is_waited_for() -> None:
    # given hosts of ranks 2 and 3 that take as much longer; the others' devices wait for rank 3, and hardly for rank 2
    cost, own = [[0.0, 0.0, 3.0, 12.0]] * 12, [[0.0, 0.0, 5.0, 20.0]] * 12
    losses = lost({"late_launch": own}, {"late_launch": cost})
    losses.host_ns[..., 0] = [0.0, 0.0, 16.0, 15.0]

    assert subjects(found_in(judged_run(12, 4), losses))[0][:3] == ("ranks", "2, 3", "late_launch")
