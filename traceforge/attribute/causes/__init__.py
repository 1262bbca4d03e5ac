"""Causes, one file each, exposing `CAUSE`: which work it claims, its failure mode, and what an engineer does next."""
