"""Whether bytes are a log with records of NCCL. In: the first bytes of a file. Out: yes or no.

Idea: one full head (host:pid:tid ... NCCL INFO), banner, line of PyTorch on NCCL or nccl-tests heading is enough,
unless the text is XML or JSON (but for lines that a collector wrapped in JSON), or source code that quotes such lines:
code must not outweigh records. Documents that quote logs are taken.
Not handled: logs whose first record stands beyond the first bytes (a long training output before it).
"""

import re

from traceforge.sources.nccl_log.framing import MARKER, heads_before
from traceforge.sources.nccl_log.json_lines import is_wrapped, unwrapped

_OTHER_FORMAT = re.compile(rb'\s*(?:\{|\[\s*[{"\]]|<(?:\?xml|!--|!DOCTYPE|system|graphs|html))')
_CODE = re.compile(
    rb"^\s*(?:def \w+\(|class \w+[:(]|import \w|from [\w.]+ import |#include\b|static \w|return\b|@\w+|ncclResult_t )",
    re.MULTILINE,
)
_FRAME = re.compile(rb'File "[^"\n]+", line \d+')
_NEIGHBOURS = re.compile(
    rb"^(?:[^\n]{0,80}[>\])]:? ?)?(?:NCCL|RCCL) version ?:? ?\d+\.\d+"
    rb"|Watchdog caught collective operation timeout: Work[A-Z]{0,9}CCL\("
    rb"|NCCL error in: \S+/(?:ProcessGroupNCCL|NCCLUtils)\.[ch]pp:\d+, |(?:exception|Error): NCCL error: [a-z]"
    rb"|# +size +count +type +(?:redop|root|time)|# Collective test starting: \w+",
    re.MULTILINE,
)


def recognises(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a log with records of NCCL."""
    if is_wrapped(head):
        head = unwrapped(head)
    if b"\0" in head[:4096] or _OTHER_FORMAT.match(head):
        return False
    records = sum(found is not None for found in heads_before(head, list(MARKER.finditer(head))))
    signs = records + len(_NEIGHBOURS.findall(head))
    # A traceback quotes a line of code a frame; that is no source file.
    return signs > 0 and signs + len(_FRAME.findall(head)) >= len(_CODE.findall(head))
