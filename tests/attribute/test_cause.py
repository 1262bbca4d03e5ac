"""Causes share out the kinds of work: each kind has one owner, and what has none is called unexplained."""

import pytest

from traceforge.attribute.cause import MODES, UNEXPLAINED, Cause, cause_of_transfer, cause_of_work, causes
from traceforge.vocabulary import vocabulary

every_cause = pytest.mark.parametrize("cause", causes().values(), ids=list(causes()))


@every_cause
def test_a_cause_has_a_mode_and_owns_something(cause: Cause) -> None:
    assert cause.mode in MODES
    assert cause.name in vocabulary().causes or cause.claims_transfer or cause is UNEXPLAINED


@every_cause
def test_a_cause_tells_a_person_what_happened_and_what_to_do_next(cause: Cause) -> None:
    advice = cause.next_step.format(subject="rank 7", peer="rank")

    assert cause.phrase
    assert cause.phrase == cause.phrase.strip(" .")
    assert advice.endswith(".")
    assert "{" not in advice


_PAUSES = ("slow_compute", "input_stall", "host_stall")


def test_slow_transfers_have_one_owner_each_on_the_fabric_on_the_path_and_where_ranks_lack() -> None:
    owners = {cause.claims_transfer: cause.mode for cause in causes().values() if cause.claims_transfer}

    assert owners == {"fabric": "fabric_contention", "path": "gpu_locality", "unrecorded": "unexplained"}
    for claim, mode in owners.items():
        assert claim is not None
        assert causes()[cause_of_transfer(claim)].mode == mode


@pytest.mark.parametrize(
    ("phase", "activity", "mode"),
    [
        ("compute", None, "synchronization_amplification"),
        ("copy", None, "gpu_locality"),
        ("input", "input", "runtime_control_plane"),
        ("runtime", "allocator", "runtime_control_plane"),
        ("idle", "unnamed", "unexplained"),
        ("levitation", None, "unexplained"),
    ],
)
def test_kinds_of_work_belong_to_the_paper_s_modes(phase: str, activity: str | None, mode: str) -> None:
    assert causes()[cause_of_work(phase, activity)].mode == mode


def test_what_looks_like_a_core_that_is_taken_away_is_a_pause_of_a_device_alone() -> None:
    # given what a stage does by design (compute), a pause with a name, and a stall that want of a core looks like
    found = {name: [causes()[name].is_pause(has_device) for has_device in (False, True)] for name in _PAUSES}

    assert found == {"slow_compute": [False, False], "input_stall": [True, True], "host_stall": [False, True]}
