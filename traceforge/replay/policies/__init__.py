"""Pacing policies, one file each, exposing `POLICY`."""
