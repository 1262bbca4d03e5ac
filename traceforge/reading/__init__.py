"""What readers of different formats share, and nothing of any one source. In: bytes. Out: pieces, rows, findings.

Idea: a source never imports another one; what two of them need stands here, below them. `stream` hands out bytes, and
`json_elements` the objects in them; `issue_log` counts what was lost; `batches` bounds what is handed to the store;
`collection` spares Python needless work. `chakra_rows`, `chakra_file`, `tensors` and `process_groups` say what both
kinds of execution traces have in common.
"""
