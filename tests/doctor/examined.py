"""What the doctor asks. In: a store of facts. Out: the same with the tables that its questions name."""

import re
from pathlib import Path

from tests.given import built
from traceforge import doctor
from traceforge.store.database import Store

_TEXTS = [path.read_text(encoding="utf-8") for path in Path(doctor.__path__[0]).iterdir() if path.is_file()]
_ASKED = sorted(
    {name for text in _TEXTS for name in re.findall(r"(?:FROM|JOIN) ((?:align|timeline|fabric|graph)\.\w+)", text)}
)


def built_for_doctor(store: Store) -> Store:
    """The same store with the tables made that the doctor asks, and what they read."""
    assert {"align.rank", "timeline.matching", "fabric.process", "graph.link"} <= set(_ASKED)
    return built(store, *_ASKED)
