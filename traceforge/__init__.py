"""traceforge: why a distributed training job scales badly, from the traces already on disk.

The public names are loaded on first use, so that `import traceforge` costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceforge.api import analyze, ingest, open_store, report
    from traceforge.errors import TraceforgeError

__version__ = "0.1.0"
__all__ = ["TraceforgeError", "__version__", "analyze", "ingest", "open_store", "report"]

_HOMES = {
    "TraceforgeError": "traceforge.errors",
    "analyze": "traceforge.api",
    "ingest": "traceforge.api",
    "open_store": "traceforge.api",
    "report": "traceforge.api",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'traceforge' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
