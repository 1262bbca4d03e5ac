"""Process groups of a job. In: the JSON text that PyTorch writes when groups are made. Out: rows of their table.

Idea: a node named `## process_group:init ##` has one input, a text that is the JSON list of groups.
Seen: PyTorch 2.3 to 2.13. Not handled: groups that are made later, and members listed in a file beside the trace.
"""

from collections.abc import Mapping

_RANK_LIMIT = 2**31
INIT_NODE = "## process_group:init ##"
"""Name of the node that lists the groups."""


def group_rows(listed: object) -> list[dict[str, object]]:
    """Columns of raw.chakra_process_group, one mapping a group; elements that are no groups are left out."""
    groups = listed if isinstance(listed, list) else []
    return [_row(group) for group in groups if isinstance(group, Mapping)]


def _row(group: Mapping[str, object]) -> dict[str, object]:
    name = group.get("pg_name")
    description, backend = group.get("pg_desc"), group.get("backend_config")
    return {
        "process_group_name": None if name is None else str(name),
        "description": None if description is None else str(description),
        "backend": None if backend is None else str(backend),
        "handle": _integer(group.get("backend_id")),
        "size": _integer(group.get("group_size")),
        "ranks": _ranks(group.get("ranks")),
    }


def _integer(value: object) -> int | None:
    return value if isinstance(value, int) and abs(value) < 2**63 else None


def _ranks(value: object) -> list[int] | None:
    """Member ranks, from a list or from a mapping of global ranks to ranks in the group."""
    listed = list(value) if isinstance(value, list | Mapping) else None
    if listed is None:
        return None
    ranks = [int(rank) for rank in listed if isinstance(rank, int) or (isinstance(rank, str) and rank.isdigit())]
    return ranks if len(ranks) == len(listed) and all(0 <= rank < _RANK_LIMIT for rank in ranks) else None


def world_size_of(rows: list[dict[str, object]]) -> int | None:
    """Number of ranks of the job: the size of the default group; None where it is not listed."""
    for row in rows:
        is_default = row["description"] == "default_pg" or (row["description"] is None and row["ranks"] == [])
        size = row["size"]
        if is_default and isinstance(size, int) and 0 < size < 2**31:
            return size
    return None
