"""Input formats, one module each, exposing `SOURCE`: bytes in, rows of raw tables out. No SQL here."""
