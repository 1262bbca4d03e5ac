"""How the network carried it. Reads timeline.* and raw.nccl_*; adds fabric.*: load, communicators, paths, findings.

The idea: once all ranks have arrived, the same bytes in the same communicator should take the same time (load); NCCL's
logs say through which NICs, channels, rings and trees they went and what of the configuration may cost time
(process, member, communicator, link, edge, ring, tree, nic, nic_distance, nic_load, operation, choice, finding); ranks
and the order of operations join the two (communicator_match, collective). NCCL's Inspector measures without a timeline
(measured).
Not handled: load of links inside a node; switch tiers; bytes of trees and NVLS (all are taken for rings).
"""
