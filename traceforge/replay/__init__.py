"""What if. Reads graph.* and timeline.*; adds replay.*: what pacing or another change would have done, and how sure.

The idea: an iteration is rebuilt from durations, exactly as it was; then durations or delays are changed (`engine`).
Without a coupling no delay can ever help; `calibration` measures couplings, `verdict` says what follows. Policies and
edits are files of the folders of those names. Not handled: iterations whose ranks issue different collectives.
"""
