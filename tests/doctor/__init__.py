"""Tests of what traces lack."""
