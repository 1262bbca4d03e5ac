"""Causes, one file each, exposing `CAUSE`: its failure mode, what happened, and what an engineer does next."""
