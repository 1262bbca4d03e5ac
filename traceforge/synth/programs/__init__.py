"""Programs of the parallel layouts, one file each: what the ranks of each role run in an iteration."""
