"""A verdict with what stands beside the timeline. In: states and rows of verdicts. Out: the rows, with more to say.

Idea: files that do not fit, execution traces, logs and flight recorder dumps each change the words; the gravest comes
last, so that it stands first. To add one: a module with such a function, and a line here.
Not handled: runs that such files alone decide, of which the state says so.
"""

from collections.abc import Sequence
from typing import Any

from traceforge.attribute.dump_text import of_hang_beside
from traceforge.attribute.graph_text import of_messages, of_mismatch
from traceforge.attribute.graph_work import of_unequal_work
from traceforge.attribute.log_text import lasting_problems, of_problems_beside, of_slow_paths_beside, slow_paths
from traceforge.attribute.odd_rank import of_odd_ranks
from traceforge.attribute.untimed import of_latest_rank
from traceforge.store.database import Store

Row = dict[str, Any]


def with_what_is_beside(store: Store, states: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """The rows of attribute.verdict, in their order.

    Args:
        states: of the same runs, as attribute/verdict.py reads them.
    """
    problems, paths, found = lasting_problems(store), slow_paths(store), []
    for state, row in zip(states, rows, strict=True):
        told = row | of_odd_ranks(store, state, row)
        told = told | of_latest_rank(store, state, told)
        told = told | of_unequal_work(store, state, told)
        told = told | of_mismatch(store, state, told)
        told = told | of_messages(store, state, told)
        run_id = state["run_id"]
        if run_id in problems:
            told = told | of_problems_beside(problems[run_id], state, told)
        else:
            told = told | of_slow_paths_beside(paths.get(run_id, ()), state, told)
        found.append(told | of_hang_beside(state, told))
    return found
