"""Where slow paths meet. In: slow communicators of a run, hosts, NICs by the logs. Out: the host or NIC they share.

A place that all slow communicators pass, and none of their peers at pace does, explains them all (boolean network
tomography with one bad place). Where two places do, or one communicator alone is slow, the communicators are named: a
trace cannot say more. Peers are those that move the same bytes at the same place of the program: only they use the
same kind of path. Not handled: several bad places at once.
"""

from collections.abc import Iterator, Sequence

from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.subjects import Subject
from traceforge.attribute.ledger.slow_transfers import peers_of


def shared_path(run: JudgedRun, slow: Sequence[int]) -> Subject | None:
    """The one place that explains slow communicators.

    Args:
        slow: their places in the ledger's communicators.
    """
    if len(slow) < 2:
        return None
    known = run.ledger.communicators
    compared = {known[peer] for place in slow for peer in peers_of(run.ledger, place)}
    wanted = {known[place] for place in slow}
    users = list(_users(run))
    nics = [subject for subject, numbers in users if subject.kind == "nic" and numbers & compared == wanted]
    hosts = [subject for subject, numbers in users if subject.kind == "host" and numbers & compared == wanted]
    # A NIC says more than its host; one of several NICs cannot be told from the others.
    found = nics if len(nics) == 1 else hosts
    return found[0] if len(found) == 1 else None


def _users(run: JudgedRun) -> Iterator[tuple[Subject, set[int]]]:
    """Each place with the communicators that pass it."""
    place_of = {rank: place for place, rank in enumerate(run.ranks)}
    for host in sorted({host for host in run.hosts if host}):
        places = tuple(place for place, own in enumerate(run.hosts) if own == host)
        ranks = {run.ranks[place] for place in places}
        yield Subject("host", host, places, f"host {host}"), {n for n, of in run.members.items() if ranks & set(of)}
    for (host, nic), by_communicator in run.nics.items():
        users = {place_of[rank] for ranks in by_communicator.values() for rank in ranks if rank in place_of}
        yield Subject("nic", f"{host} {nic}", tuple(sorted(users)), f"NIC {nic} of host {host}"), set(by_communicator)
