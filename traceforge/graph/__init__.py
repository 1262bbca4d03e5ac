"""What depends on what. Reads timeline.*, raw.chakra_*; adds graph.*: chains of ranks, and graphs of operations.

The idea: an iteration of a rank is stretches of its own work between collectives. It arrives at a collective after
its own work; it goes on after waiting for one; a collective ends after its last arrival. Everything a replay may
change is a duration in these tables (arrival, work, critical_path).

Below that, where execution traces were recorded, stands a graph of single operations: whose trace it is (trace), how it
was tied to the timeline (link, linked_node), its nodes and dependencies as recorded and as derived (node, derived_edge,
edge), and what it is good for (quality, baseline).
"""
