"""One DuckDB file: facts (`meta.*`, `raw.*`) that are migrated and never lost, and stages that are built from them."""
