"""At N ranks. Reads timeline.*, attribute.* and meta.run; adds forecast.*: scaling, or what must be measured for it.

The idea: one run has one scale, and one point makes no curve. What it does tell is where an iteration's time goes.
"""
