"""What if. Reads graph.*; adds replay.*: what a pacing policy would have done, and how far one may believe it.

The idea: an iteration is rebuilt from durations, exactly as it was; then durations or delays are changed.
"""
