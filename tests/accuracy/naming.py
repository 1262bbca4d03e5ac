"""Whom an answer must name, and whom a finding names. In: truth.json and findings. Out: culprits, and how both compare.

A finding names a culprit where its mode is one of the culprit's and its subject is the culprit's, however it is told:
a host, or exactly its ranks; two ranks, or each of them in a finding of its own. A finding that names some of the
ranks and no other tells a part. Where all groups that use the network are slow together the culprit is the job; where
some are, one of them. Where each of them lacks a trace, a slow network cannot be told from a late rank that was not
recorded: the right answer is that something is lost which these traces do not explain.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Findings = Sequence[Mapping[str, Any]]
# Kind of subject, and which one; rank and ranks are one kind, and which ones is a set.
Subject = tuple[str, str | frozenset[int]]


@dataclass(frozen=True, slots=True)
class Named:
    """A culprit.

    Attributes:
        modes: failure modes, of which a finding may name any.
        kind: of its subject, as truth.json tells it.
        subject: the same.
        accepted: subjects that name it.
        ranks: ranks that are struck and recorded.
        delay_ns: what it costs, a mean of what removing it saves and of what it adds alone.
        removed_ns: what removing it alone saves.
        added_ns: what it alone costs.
        share: of the iteration.
    """

    modes: frozenset[str]
    kind: str
    subject: str
    accepted: frozenset[Subject]
    ranks: frozenset[int]
    delay_ns: float
    removed_ns: float
    added_ns: float
    share: float

    def is_named_by(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding names it, and nothing else."""
        return finding["mode"] in self.modes and subject_of(finding) in self.accepted

    def is_told_in_part_by(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding names some of its ranks and no other."""
        kind, which = subject_of(finding)
        if self.kind not in ("host", "ranks") or kind != "ranks" or isinstance(which, str):
            return False
        return finding["mode"] in self.modes and which < self.ranks

    def place(self, findings: Findings) -> int | None:
        """Where it is named, from 0; None where it is not."""
        return next((place for place, one in enumerate(findings) if one in self.told(findings)), None)

    def told(self, findings: Findings) -> list[Mapping[str, Any]]:
        """Findings that name it; of several ranks also findings that name all of them one by one."""
        exact = [one for one in findings if self.is_named_by(one)]
        if exact or self.kind != "ranks":
            return exact
        parts = [one for one in findings if self.is_told_in_part_by(one)]
        told = frozenset(rank for one in parts for rank in subject_of(one)[1] if isinstance(rank, int))
        return parts if told == self.ranks else []


def subject_of(finding: Mapping[str, Any]) -> Subject:
    """Whom a finding names."""
    kind, subject = finding["subject_kind"], str(finding["subject"])
    if kind in ("stage", "link") and finding.get("ranks"):
        return kind, frozenset(int(rank) for rank in finding["ranks"])
    if kind in ("rank", "ranks"):
        ranks = finding.get("ranks") or subject.split(",")
        return "ranks", frozenset(int(rank) for rank in ranks)
    return kind, subject


def culprits(truth: Mapping[str, Any], groups: Mapping[str, list[int]], lost: frozenset[int]) -> list[Named]:
    """One a trouble. `groups` are the ranks of communicators by name, `lost` ranks without a trace."""
    return [_named(trouble, truth, groups, lost) for trouble in truth["troubles"]]


def during(truth: Mapping[str, Any], iterations: Collection[int]) -> dict[str, Any]:
    """What is true of some of the iterations; of all of them where none of these is known."""
    kept = [place for place, iteration in enumerate(truth["iterations"]) if iteration in iterations]
    if not kept:
        return dict(truth)
    troubles = [
        {**one, **{name: [one[name][place] for place in kept] for name in ("removed_ns", "added_ns")}}
        for one in truth["troubles"]
    ]
    return {**truth, "troubles": troubles, "duration_ns": [truth["duration_ns"][place] for place in kept]}


def is_lost(named: Named) -> bool:
    """Whether all ranks that are at fault lack their traces."""
    return named.kind in ("rank", "ranks", "host") and not named.ranks


def _named(
    trouble: Mapping[str, Any], truth: Mapping[str, Any], groups: Mapping[str, list[int]], lost: frozenset[int]
) -> Named:
    removed, added = (sum(trouble[name]) / len(trouble[name]) for name in ("removed_ns", "added_ns"))
    # Of two faults, each one's Shapley value is the mean of what it adds alone and what removing it saves.
    delay = (removed + added) / 2
    share = delay / (sum(truth["duration_ns"]) / len(truth["duration_ns"]))
    slowed = [ranks for number in trouble["faults"] for ranks in truth["faults"][number]["communicators"]]
    modes, kind, subject = frozenset(trouble["modes"]), trouble["subject_kind"], trouble["subject"]
    ranks = frozenset(trouble["ranks"]) - lost
    accepted: set[Subject] = {(kind, subject)}
    if slowed and all(lost.intersection(group) for group in slowed):
        modes, kind, subject, accepted = frozenset({"unexplained"}), "job", "all", {("job", "all")}
    elif kind == "communicator":
        accepted = {(kind, name) for name, members in groups.items() if members in slowed}
        # All pairs of a host are slow: the host is what they share.
        struck = {rank for members in slowed for rank in members}
        accepted |= {("host", host) for host in truth["hosts"] if struck == set(_ranks_of(truth, host))}
    elif kind == "link":
        # The two ranks, or their communicator where it has no others.
        accepted |= {(kind, ranks)} | {
            ("communicator", name) for name, own in groups.items() if ranks == frozenset(own)
        }
        if len(ranks) in (1, len(truth["hosts"])) or trouble.get("of_host"):
            # Between the only two hosts, or racks, lies the whole network. Whose link is slow is only told by calls
            # that leave some hosts out.
            accepted.add(("job", "all"))
        accepted |= {(kind, frozenset(one)) for one in trouble.get("links", ())}
    elif not slowed:
        # A stage may be a host.
        accepted |= {(kind, ranks), ("stage", ranks)}
        accepted.add(("ranks", ranks))
        hosts = {host: frozenset(_ranks_of(truth, host)) for host in truth["hosts"]}
        # A host of one rank is that rank.
        accepted |= {("host", host) for host, own in hosts.items() if own == frozenset(trouble["ranks"])}
    return Named(modes, kind, subject, frozenset(accepted), ranks, delay, removed, added, share)


def _ranks_of(truth: Mapping[str, Any], host: str) -> list[int]:
    return [rank for rank, name in enumerate(truth["hosts"]) if name == host]
