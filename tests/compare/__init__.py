"""Tests of the comparison of two runs."""
