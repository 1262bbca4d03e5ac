"""A published scaling table: throughput (samples/s) and variation of the step by nodes, without and with pacing."""

from traceforge.forecast.scale_point import ScalePoint

NODES = (4, 8, 16, 32, 64)
BASELINE = ((1024, 0.02), (1980, 0.04), (3600, 0.09), (5800, 0.15), (8200, 0.22))
COORDINATED = ((1018, 0.02), (1995, 0.03), (3720, 0.05), (6250, 0.07), (9100, 0.09))
COLUMNS = {"baseline": BASELINE, "coordinated": COORDINATED}


def points_of(column: str, *, up_to: int) -> list[ScalePoint]:
    """The points of a column up to a number of nodes."""
    return [
        ScalePoint(f"{nodes} nodes", nodes, throughput, cv=cv)
        for nodes, (throughput, cv) in zip(NODES, COLUMNS[column], strict=True)
        if nodes <= up_to
    ]


def throughput(column: str, nodes: int) -> float:
    """Throughput of a column at a number of nodes."""
    return COLUMNS[column][NODES.index(nodes)][0]
