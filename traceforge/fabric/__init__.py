"""How collectives used the network. Reads timeline.*, raw.nccl_*; adds fabric.*: load, communicators, paths, findings.

Idea: once all ranks have arrived, the same bytes in the same communicator should take the same time (load). NCCL's logs
say which NICs, channels, rings and trees they use and which settings may cost time (process, member, communicator,
link, edge, ring, tree, nic, nic_distance, nic_load, operation, choice, finding). Ranks and the order of operations join
logs and timeline (communicator_match, collective). NCCL's Inspector measures without a timeline (measured).
Not handled: load of links inside a node; switch tiers; bytes of trees and NVLS, which are modelled as rings.
"""
