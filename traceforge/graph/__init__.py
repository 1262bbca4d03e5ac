"""What depends on what. Reads timeline.*; adds graph.*: each rank's chain of own work, arrivals and waits.

The idea: an iteration of a rank is stretches of its own work between collectives. It arrives at a collective after
its own work; it goes on after waiting for one; a collective ends after its last arrival. Everything a replay may
change is a duration in these tables.
"""
