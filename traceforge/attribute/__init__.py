"""Who owns each lost nanosecond. Reads graph.*, timeline.* and align.*; adds attribute.*: a ledger and findings.

The idea: a completion is late by a sum of parts, each owned by a rank's work or by the fabric; waiting owns nothing.
Parts flow along the chains, and are shared where ranks meet.
"""
