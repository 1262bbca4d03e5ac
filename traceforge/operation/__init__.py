"""What each rank worked on. In: raw events, judged iterations. Out: operation.*, a row a distinct thing, never a call.

`kernel` is the table that others rely on; `coverage` says what of the device's work it holds, and why the rest has no
operation. Not handled: the operations inside of captured graphs, whose launch names none of them.
"""
