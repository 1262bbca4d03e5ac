"""At N ranks. Reads timeline.*, attribute.* and meta.run; adds forecast.*: scaling, or what must be measured for it.

The idea: runs at several scales make a curve, and the spread between models is its main uncertainty. One run has one
scale, and one point makes no curve; it tells where an iteration's time goes and how lateness grows with ranks.

`points` and `scale_point` gather what was measured; `models/` holds one model a file; `ensemble` fits, back-tests and
joins them; `curve`, `goodput`, `what_if` and the tables beside them say what follows for a plan.
"""
