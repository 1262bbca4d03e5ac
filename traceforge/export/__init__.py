"""The database as files of other programs. In: tables of a store. Out: files that those programs read.

`chakra` writes execution traces for simulators, one a rank: `chakra_graph` chooses nodes and true dependencies,
`protobuf` is the wire format. Nothing here changes the database.
"""
