"""The command line: one file a command. In: arguments. Out: data on stdout, everything else on stderr, an exit code.

A command parses, calls `traceforge.api`, prints. Heavy libraries are imported inside the commands that need them, so
that `--help` answers at once; plain questions are answered without even the parser of arguments. Errors of a user's
making are one line and a hint, never a traceback.
"""

import contextlib
import errno
import io
import os
import sys
import traceback

from traceforge.cli.console import print_error, print_unwritten
from traceforge.cli.loudness import Loudness, say_timings, speak
from traceforge.cli.plain_questions import is_answered
from traceforge.cli.process import prepared
from traceforge.errors import InputUnusableError, TraceforgeError

# What the operating system says of it, whether through Python, polars or DuckDB.
_NO_ROOM = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


def _flush_quietly(*, is_cut: bool) -> None:
    """Write out what is left; where nobody reads it, drop it without a word."""
    try:
        if not is_cut:
            sys.stdout.flush()
            return
    except BrokenPipeError:
        pass
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def main() -> None:
    """Run the command line; ends the process with one of the exit codes listed in `traceforge.errors`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does, where the encoding lacks a character
    try:
        speak(Loudness.usual)
        with prepared():
            # A query may begin with a comment; an option has no blank behind its dashes.
            arguments = [f"\n{one}" if one.startswith(("-- ", "--\n")) else one for one in sys.argv[1:]]
            if not is_answered(arguments):
                from traceforge.cli.app import app
                from traceforge.store.allocator import give_back_large_arrays

                give_back_large_arrays()
                try:
                    app(arguments)
                finally:
                    say_timings()
    except SystemExit as ending:
        # Libraries end the process with 1 where the reader of our output has gone (`| head`): it has what it wanted.
        is_cut = isinstance(ending.__context__, BrokenPipeError)
        try:
            _flush_quietly(is_cut=is_cut)
        except OSError as error:
            _flush_quietly(is_cut=True)
            print_unwritten(error)
            sys.exit(ending.code or InputUnusableError.exit_code)
        sys.exit(0 if is_cut else ending.code)
    except TraceforgeError as error:
        print_error(str(error))
        sys.exit(error.exit_code)
    except BrokenPipeError:
        _flush_quietly(is_cut=True)
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - the last resort: say so and how to report it
        if os.environ.get("TRACEFORGE_DEBUG"):
            traceback.print_exc()
        if any(reason in str(error) for reason in _NO_ROOM):
            hint = "free disk space and run again: files already read are kept"
            print_error(f"the disk is full, or a limit on file sizes is reached: {error}\n\nhint: {hint}")
            sys.exit(InputUnusableError.exit_code)
        if isinstance(error, OSError) and error.strerror:
            place = f"{error.filename}: " if error.filename else ""
            print_error(f"{place}{error.strerror}\n\nhint: choose a place where you may write, or make room there")
            sys.exit(InputUnusableError.exit_code)
        hint = "this is a bug in traceforge; run again with TRACEFORGE_DEBUG=1 and report the output"
        print_error(f"{type(error).__name__}: {error}\n\nhint: {hint}")
        sys.exit(1)
