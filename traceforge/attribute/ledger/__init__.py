"""The ledger: who owns each nanosecond above the reference, by the blame that reaches the end of an iteration."""
