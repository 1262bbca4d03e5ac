"""Tests of limits on a run."""
