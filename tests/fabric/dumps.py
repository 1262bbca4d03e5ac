"""Flight recorder dumps for tests, as PyTorch writes them. In: who made which calls. Out: dumps by rank."""

from dataclasses import dataclass, field

Groups = dict[str, list[int]]


@dataclass
class Recorder:
    """One rank's dump: groups by name, how far it got in each, and its calls in order."""

    rank: int
    groups: Groups
    progress: dict[str, tuple[int, int]] = field(default_factory=dict)
    entries: list[dict[str, object]] = field(default_factory=list)
    counts: bool = True

    def got(self, group: str, enqueued: int, completed: int) -> "Recorder":
        """Its counter of a group."""
        self.progress[group] = (enqueued, completed)
        return self

    def calls(
        self, group: str, sequence: int, op: str = "all_reduce", size: int = 8, state: str = "scheduled", line: int = 7
    ) -> "Recorder":
        """A collective."""
        return self._add(group, f"nccl:{op}", sequence, size, state, line)

    def sends(self, group: str, op: str, sequence: int = 3) -> "Recorder":
        """A send or receive such as `send 0->1`, by ranks within the group, after so many collectives of it."""
        return self._add(group, f"nccl:{op}", sequence, 8, "scheduled", 7, message=len(self.entries))

    def batch(self, group: str, *ops: str, state: str = "scheduled", sequence: int = 0) -> "Recorder":
        """Messages of one `batch_isend_irecv`: PyTorch follows the state of the entry after them alone."""
        number = len(self.entries)
        for op in ops:
            self._add(group, f"nccl:{op}", sequence, 8, "scheduled", 7, message=number)
        return self._add(group, "nccl:coalesced", sequence, 8, state, 7, message=number)

    def _add(
        self, group: str, name: str, sequence: int, size: int, state: str, line: int, message: int | None = None
    ) -> "Recorder":
        self.entries.append(
            {
                "record_id": len(self.entries),
                "p2p_seq_id": message or 0,
                "pg_id": self._numbers()[group],
                "process_group": (group, f"{group}_GROUP"),
                "collective_seq_id": sequence,
                "profiling_name": name,
                "time_created_ns": 1_000_000 * len(self.entries) + self.rank,
                "input_sizes": [[size]],
                "input_dtypes": ["Float"],
                "state": state,
                "is_p2p": message is not None,
                "frames": [
                    {"name": "all_reduce", "filename": "/lib/torch/distributed/c10d.py", "line": 1},
                    {"name": "step", "filename": "train.py", "line": line},
                ],
            }
        )
        return self

    def _numbers(self) -> dict[str, int]:
        """Numbers of the groups in the process: counted up as groups are made, and not their names."""
        own = sorted((name for name, ranks in self.groups.items() if self.rank in ranks), key=int)
        return {name: 2 * number for number, name in enumerate(own)}

    def dump(self) -> dict[str, object]:
        """What PyTorch would have pickled."""
        numbers = self._numbers()
        config = {name: {"name": name, "desc": f"{name}_GROUP", "ranks": str(self.groups[name])} for name in numbers}
        status = {
            str(numbers[name]): {
                "last_enqueued_collective": enqueued,
                "last_started_collective": -1,
                "last_completed_collective": completed,
            }
            for name in numbers
            for enqueued, completed in [self.progress.get(name, (0, 0))]
        }
        return {
            "version": "2.9",
            "entries": self.entries,
            "pg_config": config,
            "pg_status": status if self.counts else {},
        }


def recorders(groups: Groups) -> list[Recorder]:
    """One recorder a rank, with nothing recorded yet."""
    return [Recorder(rank, groups) for rank in range(1 + max(max(ranks) for ranks in groups.values()))]
