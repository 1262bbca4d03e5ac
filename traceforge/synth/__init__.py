"""A generator of training jobs whose trouble is known. In: a scenario. Out: trace files and what is true of them.

The idea: events are simulated, not drawn. A fault changes what a host or a device has to do, and what follows from
that is worked out op by op; `truth.json` comes from simulating again with the same random draws and without the
fault. Beside timelines (`kineto`) it writes what else such a job leaves, where asked: execution traces, NCCL's debug
logs (`nccl_log`, from a `wiring` that faults change) and files of its Inspector. It knows nothing of the code that
reads or judges traces. Not handled: pipeline stages, sharded parameters.
"""
