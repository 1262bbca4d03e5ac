"""Faults, one file each, exposing `FAULT`: what a host or a device has to do more when it strikes."""
