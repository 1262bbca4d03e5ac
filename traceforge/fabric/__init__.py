"""How the network carried it. Reads timeline.*; adds fabric.*: load and pace of each communicator's transfers.

The idea: once all ranks have arrived, the same bytes in the same communicator should take the same time. NCCL logs,
which tell NICs and paths, are not read yet.
"""
