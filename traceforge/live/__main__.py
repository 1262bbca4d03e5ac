"""`TRACEFORGE_LIVE=traces/ torchrun -m traceforge.live train.py ...`: a program recorded as it is.

In: a Python program and its arguments. Out: what it does; beside it a recording in which a step ends where an optimiser
has stepped. Not handled: programs with several optimisers, or several backward passes a step: they say
`recorder.step()` themselves.
"""

import importlib
import importlib.util
import runpy
import sys
from collections.abc import Sequence
from typing import Any

from traceforge.live import Recorder, record


def main(arguments: Sequence[str]) -> int:
    """Run a program."""
    if not arguments:
        print("usage: TRACEFORGE_LIVE=FOLDER python -m traceforge.live PROGRAM.py [ARGUMENT...]", file=sys.stderr)
        return 2
    has_torch = importlib.util.find_spec("torch") is not None
    if has_torch:
        importlib.import_module("torch")
    sys.argv = list(arguments)
    with record() as recorder:
        undo = _steps(recorder) if has_torch else None
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        finally:
            if undo is not None:
                undo.remove()
    return 0


def _steps(recorder: Recorder) -> Any:
    """End a step after each step of an optimiser."""
    module = importlib.import_module("torch.optim.optimizer")
    return module.register_optimizer_step_post_hook(lambda *_: recorder.step())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
