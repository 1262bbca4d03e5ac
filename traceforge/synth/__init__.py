"""Workloads with a known answer. Writers of its own; shares no code with what reads or judges traces.

Nothing is here yet: sample traces are recorded (sample_traces/record), and the generator is still to come.
"""
