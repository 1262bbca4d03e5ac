"""Where slow paths meet. In: slow communicators of a run, hosts, NICs by the logs. Out: the host or NIC they share.

A place that all slow communicators pass, and none of their peers at pace does, explains them all (boolean network
tomography with one bad place). Where several hosts do, all of them are between these, and so is the fault, at any of
them. Where more places do, or one communicator alone is slow, the communicators are named: a trace cannot say more. Of
paths of messages, a rank at which all of them end is a place, too. Peers are those that move
the same bytes at the same place of the program: only they use the same kind of path. Not handled: several bad places at
once.
"""

from collections.abc import Iterator, Mapping, Sequence, Set

from traceforge.attribute.findings.lost_time import JudgedRun
from traceforge.attribute.findings.subjects import Subject, between_hosts, rank_of
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
    return place_passed(run, {known[place] for place in slow}, compared)


def place_passed(run: JudgedRun, wanted: Set[int], compared: Set[int]) -> Subject | None:
    """The one place that all of some communicators pass, and none of those that they are compared with."""
    users = list(_users(run))
    nics = [subject for subject, numbers in users if subject.kind == "nic" and numbers & compared == wanted]
    hosts = [subject for subject, numbers in users if subject.kind == "host" and numbers & compared == wanted]
    ranks = [subject for subject, numbers in users if subject.kind == "rank" and numbers & compared == wanted]
    # A NIC says more than its host; one of several NICs cannot be told from the others.
    found = nics if len(nics) == 1 else hosts or ranks
    if len(found) == 1:
        return found[0]
    return between_hosts(run, [host.name for host in hosts]) if len(hosts) > 1 else None


def _users(run: JudgedRun) -> Iterator[tuple[Subject, set[int]]]:
    """Each place with the communicators that pass it."""
    place_of = {rank: place for place, rank in enumerate(run.ranks)}
    owners = run.ledger.communicators
    for host in sorted({host for host in run.hosts if host}):
        places = tuple(place for place, own in enumerate(run.hosts) if own == host)
        ranks = {run.ranks[place] for place in places}
        yield Subject("host", host, places, f"host {host}"), {n for n in owners if ranks & set(run.ranks_on(n))}
    for (host, nic), by_communicator in run.nics.items():
        users = {place_of[rank] for ranks in by_communicator.values() for rank in ranks if rank in place_of}
        passing = {n for n in owners if _passes(run, n, by_communicator)}
        yield Subject("nic", f"{host} {nic}", tuple(sorted(users)), f"NIC {nic} of host {host}"), passing
    for rank in sorted({rank for n in run.ledger.paths for rank in run.ranks_on(n)} & place_of.keys()):
        ended = {n for n in owners if n in run.ledger.paths and rank in run.ranks_on(n)}
        yield rank_of(run, place_of[rank]), ended


def _passes(run: JudgedRun, owner: int, ranks_at_nic: Mapping[int, Sequence[int]]) -> bool:
    """Whether a communicator, or a path of its messages, passes a NIC; `ranks_at_nic` by communicator."""
    ranks = ranks_at_nic.get(run.communicator_of(owner))
    return ranks is not None and (owner not in run.ledger.paths or bool(set(ranks) & set(run.ranks_on(owner))))
