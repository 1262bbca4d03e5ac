"""At N ranks. Reads timeline.*, attribute.* and meta.run; adds forecast.*: scaling, or what must be measured for it.

The idea: runs at several scales make a curve, and the spread between models is its main uncertainty. One run has one
scale, and one point makes no curve; it shows where an iteration's time goes and how lateness grows with ranks.

`points` gathers what was measured and fits each curve once; `models/` holds one model a file; `ensemble` fits,
back-tests and combines them; the modules named like tables write those from the fits, `answer` replies to a planner.
"""
