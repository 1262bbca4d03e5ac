"""What the page's script gets, undone. In: a report or a payload. Out: plain values and time by rank and phase."""

import base64
import json
import re
import zlib
from collections import Counter
from typing import Any

from traceforge.report.palette import PHASES


def embedded(html: str) -> Any:
    """The timeline's data as the script inflates them."""
    (text,) = re.findall(r'<script type="application/json" id="data-timeline">(.*?)</script>', html, re.DOTALL)
    return json.loads(zlib.decompress(base64.b64decode(json.loads(text)["deflate"]), wbits=-zlib.MAX_WBITS))


def spent(page: Any, number: int, rank: int) -> dict[str, int]:
    """Steps of a rank in each phase within an iteration."""
    place = list(page["iterations"]).index(number)
    first = page["offsets"][place]
    last = first + page["extents"][place]
    codes, lengths = page["lanes"][list(page["ranks"]).index(rank)]
    found: Counter[str] = Counter()
    reached = 0
    for code, length in zip(codes, lengths, strict=True):
        start, reached = reached, reached + length
        if code != "-" and start >= first and reached <= last:
            found[PHASES[int(code)]] += length
    return dict(found)
