"""Benchmarks, run by hand: each measures us beside a peer or a limit in one run and writes the ratios it found."""
