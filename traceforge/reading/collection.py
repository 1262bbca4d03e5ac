"""Python's search for garbage, paused. In: nothing. Out: a context.

Idea: decoded events and nodes form no cycles; looking for some among millions costs more than decoding them.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Nothing is searched for cycles inside; afterwards all is as it was."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
