"""How often the diagnosis is right, on jobs whose trouble is known.

`python -m tests.accuracy` judges the whole grid and writes RESULTS.md; a part of it runs with the other tests.
"""
