"""Input formats: bytes to batches of typed rows. One module or package a format, each exposing `SOURCE`.

A source knows its format and no SQL; sources do not know one another. They are found by listing this folder.
"""
