"""One clock for all ranks. Reads raw.*; adds align.*: the file of each rank, which calls form one collective, and how
far each rank's clock is off.

The idea: collectives that end together on all ranks are common events; they tie the clocks.
"""
