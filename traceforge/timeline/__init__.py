"""What happened, on one clock. Reads align.* and raw.*; adds timeline.*: iterations, collectives, arrivals, phases.

The idea: at every instant of an iteration a rank is in exactly one phase, so the phases add up to the iteration.
"""
