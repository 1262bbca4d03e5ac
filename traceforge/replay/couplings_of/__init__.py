"""Measuring couplings. In: arrays of one run. Out: a coefficient with its interval, or why there is none.

The idea: something varies by chance in the run itself (own work, what runs beside a kernel); a coupling is what
follows from that variation and from nothing else. Pure functions; `calibration` reads the store and judges.
"""
