"""Rules for findings from configuration evidence: one file a rule, exposing `RULE`. They never import one another."""
