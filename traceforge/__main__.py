"""`python -m traceforge` is the command line."""

from traceforge.cli import main

main()
