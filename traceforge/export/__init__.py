"""Exports for other programs. In: tables of a store. Out: files that those programs read.

`chakra` writes execution traces for simulators, one per rank: `chakra_graph` selects nodes and true dependencies,
`chakra_threads` chains those of the host, `chakra_groups` numbers process groups, `protobuf` is the wire format.
`perfetto` packs the traces on one clock with `perfetto_tracks` of the findings; `parquet` writes the tables. Nothing
here changes the database.
"""
