"""Work without what waiting beside it cost, worked by hand."""

import numpy as np

from tests.replay.edits.jobs import job_of
from tests.replay.models import lockstep_plan, model_of
from traceforge.replay.coupling import NO_COUPLING, Couplings
from traceforge.replay.edit import EditedJob, parse_edit
from traceforge.replay.engine import record
from traceforge.replay.model import StepModel
from traceforge.replay.unslowed import unslowed


def one_late_rank() -> StepModel:
    """Rank 0 is late at the first meeting, which nobody awaits; all take 40 for what follows.

    rank 0   |work 50··············|work 40······|
    rank 1   |work 10|work 40 beside a wait······|
    """
    plan = lockstep_plan([[[50, 10, 10], [40, 40, 40]]], transfer_ns=5)
    plan.awaited[:, 0] = -1
    return model_of(plan)


def test_work_beside_a_wait_takes_less_alone() -> None:
    # given that waiting doubles the time of work beside it: ranks 1 and 2 wait from 10 to 50
    model = one_late_rank()

    alone = unslowed(model, record(model), Couplings(waiting=1.0))

    assert alone.before_arrival_ns[0, :2, :, 0].tolist() == [[50, 10, 10], [40, 20, 20]]
    assert unslowed(model, record(model), NO_COUPLING) is model


def test_a_late_rank_is_fixed_to_what_others_take_alone() -> None:
    job = job_of(one_late_rank())
    coupled = EditedJob(job.model, job.places, job.recorded, couplings=Couplings(waiting=1.0))
    edit, settings = parse_edit("fix_rank:rank=0")

    fixed, as_recorded = (edit.apply(one, settings).model.before_arrival_ns[0, :2, 0, 0] for one in (coupled, job))

    np.testing.assert_array_equal(fixed, [10, 20])
    np.testing.assert_array_equal(as_recorded, [10, 40])
