"""Reading and writing artefacts: Parquet tables with declared schemas, safetensors, JSON. Nothing is pickled.

Every write goes to a temporary file that is unique to the process and is then renamed, so that a reader sees a whole
file or none, and two writers never mix.
"""

from plumbline.store.records import read_json, read_record, replacing, write_json, write_text
from plumbline.store.schema import (
    CELL,
    FLAGS,
    GROUPS,
    INSTANCE_KEY,
    INTEGERS,
    NUMBERS,
    SCHEMAS,
    STATUS,
    WORD,
    TableSchema,
    declare,
    schema_of,
)
from plumbline.store.tables import first_rows, read_stamped, read_table, stream_table, write_table
from plumbline.store.tensors import read_tensors, tensor_names, write_arrays, write_tensors

__all__ = [
    "CELL",
    "FLAGS",
    "GROUPS",
    "INSTANCE_KEY",
    "INTEGERS",
    "NUMBERS",
    "SCHEMAS",
    "STATUS",
    "WORD",
    "TableSchema",
    "declare",
    "first_rows",
    "read_json",
    "read_record",
    "read_stamped",
    "read_table",
    "read_tensors",
    "replacing",
    "schema_of",
    "stream_table",
    "tensor_names",
    "write_arrays",
    "write_json",
    "write_table",
    "write_tensors",
    "write_text",
]
