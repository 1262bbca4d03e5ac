"""The timeline that one can walk in. In: tables of all stages. Out: one payload that the page's script draws.

`runs` are the phases of every rank, `moments` the findings' places, `arrivals` the collectives across ranks, `streams`
the operations of the ranks opened in detail, `owners` the strip of lost time; `payload` puts them together. All times
are whole steps of `axis`, one line on which iteration follows iteration.
"""
