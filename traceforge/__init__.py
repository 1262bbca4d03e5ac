"""traceforge: why a distributed training job scales badly, from the traces already on disk.

The public names are loaded on first use, so that `import traceforge` costs nothing. `open` is where to begin: it gives
a `Run` whose methods are the commands (see `traceforge.notebook`); the others are the steps it is made of. Commands are
no functions of this package, as `traceforge.report` and its like name the packages behind them.
"""

from typing import TYPE_CHECKING

from traceforge.version import __version__

if TYPE_CHECKING:
    from traceforge.api import analyze, ingest, open_store
    from traceforge.errors import TraceforgeError
    from traceforge.notebook import Run
    from traceforge.notebook import open_run as open  # noqa: A004  # as in `traceforge.open(path)`

__all__ = ["Run", "TraceforgeError", "__version__", "analyze", "ingest", "open", "open_store"]

_HOMES = {
    "Run": "traceforge.notebook:Run",
    "TraceforgeError": "traceforge.errors:TraceforgeError",
    "analyze": "traceforge.api:analyze",
    "ingest": "traceforge.api:ingest",
    "open": "traceforge.notebook:open_run",
    "open_store": "traceforge.api:open_store",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'traceforge' has no attribute '{name}'")
    import importlib

    module, _, own_name = _HOMES[name].partition(":")
    return getattr(importlib.import_module(module), own_name)


def __dir__() -> list[str]:
    return __all__
