"""Answers for agents over the Model Context Protocol. In: trace databases, read-only. Out: small pages of JSON.

Idea: a tool is a question of the command line; its answer names the SQL that yields each number, comes in pages that
fit an agent's context, and says what was not measured. Not handled: writing of any kind.
"""
