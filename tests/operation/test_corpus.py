"""Arithmetic and device time against numbers that others published for the same traces."""

from pathlib import Path

import pytest

from traceforge import api
from traceforge.store.database import Store

_ROWS = """
SELECT operation, SUM(operation_calls), SUM(flops) / SUM(operation_calls) / 1e9,
  SUM(bytes) / SUM(operation_calls) / 1048576, SUM(duration_ns) / 1e3
FROM operation.kernel
WHERE flops IS NOT NULL
GROUP BY operation, shapes
ORDER BY 5 DESC
"""

# Operation, calls, GFLOP and MiB a call, us of all calls: from the published report of this trace.
_PUBLISHED = [
    ("aten::addmm", 48, 0.930167808, 3.43505859, 399.136719),
    ("aten::cudnn_convolution", 1, 0.924844032, 3.421875, None),
    ("aten::_flash_attention_forward", 12, 0.476884992, 4.6171875, 122.848145),
]


def test_work_and_time_are_those_that_were_published(corpus: Path) -> None:
    (path,) = (corpus / "traces/kineto/tracelens_h100").glob("Falconsai*")
    with Store(None) as store:
        api.ingest([path], store, jobs=1)
        found = store.query(_ROWS).rows()

    for operation, calls, gflop, mebibytes, spent_us in _PUBLISHED:
        own = [row for row in found if row[:2] == (operation, calls)]
        assert [row[2:4] for row in own] == [pytest.approx((gflop, mebibytes), rel=1e-6)]
        assert spent_us is None or own[0][4] == pytest.approx(spent_us, rel=1e-4)
