"""What-if edits, one file each, exposing `EDIT`."""
