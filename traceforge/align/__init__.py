"""One clock for all ranks. Reads raw.*; adds align.*: who speaks for which rank, which calls are one collective, and
by how much each rank's clock is off.

The idea: collectives that end together on all ranks are common events; they tie the clocks.
"""
