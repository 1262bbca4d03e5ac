"""Where the process of the command line begins: `traceforge` and `python -m traceforge`.

What is loaded before signals are handled takes some 50 ms. Until then Ctrl-C ends the process as it ends any other:
Python would print where it was.
"""

import signal


def main() -> None:
    """Run the command line; ends the process."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from traceforge.cli import main as run

    run()


if __name__ == "__main__":
    main()
