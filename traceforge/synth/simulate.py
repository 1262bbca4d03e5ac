"""The simulation. In: the programs of all roles, a load and couplings. Out: when everything happens, in true time.

Ranks of a role run the same program, so each operation is worked out for all of them at once. A host issues in order
and calls the driver when it gets there; it runs ahead until it synchronises or the launch queue is full. A stream runs
in order: a kernel starts when what it follows is done, a collective ends a transfer after its last arrival, a message
moves when both sides are there and holds both streams until then. Roles go on side by side, each as far as it can.
"""

from traceforge.errors import UsageError
from traceforge.synth.cluster import Cluster
from traceforge.synth.events import SimulatedEvents, no_events
from traceforge.synth.load import Load
from traceforge.synth.program import Roles, Workload
from traceforge.synth.runner import Runner
from traceforge.synth.task import Coupling, Meetings


def simulate(cluster: Cluster, workload: Workload, roles: Roles, load: Load, coupling: Coupling) -> SimulatedEvents:
    """Run all iterations.

    Raises:
        UsageError: programs wait for one another for ever.
    """
    iterations, operations, ranks = load.host_ns.shape
    events = no_events((iterations, operations, ranks), len(load.stalls))
    meetings = Meetings(load)
    runners = [Runner(cluster, workload, role, load, coupling, events, meetings) for role in roles]
    for i in range(iterations):
        for runner in runners:
            runner.begin(i)
        while not all(runner.is_done for runner in runners):
            if not any(runner.advance() for runner in runners):
                waiting = [role.ranks[0] for role, one in zip(roles, runners, strict=True) if not one.is_done]
                raise UsageError(f"the programs of ranks {waiting} and their peers wait for one another")
        meetings.forget()
    return events
