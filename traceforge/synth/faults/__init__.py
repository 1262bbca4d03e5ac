"""Faults, one file each, exposing `FAULT`: the extra work or delay of a host or a device when it strikes."""
