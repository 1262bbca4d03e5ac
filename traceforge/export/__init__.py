"""The database as files of other programs. In: tables of a store. Out: files that those programs read.

`chakra` writes execution traces for simulators, one a rank: `chakra_graph` chooses nodes and true dependencies,
`protobuf` is the wire format. `perfetto` packs the traces on one clock with `perfetto_tracks` of what was found;
`parquet` writes the tables. Nothing here changes the database.
"""
