"""A generator of training jobs with known faults. In: a scenario. Out: trace files and what is true of them.

The idea: events are simulated, not drawn. A fault changes what a host or a device has to do, and the consequences are
simulated operation by operation; `truth.json` comes from simulating again with the same random draws and without the
fault. Besides timelines (`kineto`) it writes, where asked, execution traces, NCCL's debug logs (`nccl_log`, from a
`wiring` that faults change) and the files of its Inspector. It shares no code with what reads or judges traces. Not
handled: experts within stages, context parallelism.
"""
