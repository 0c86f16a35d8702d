"""Whole fetches of RecordBatch v2 to Arrow columns, and Arrow columns to batches: compiled loops, nothing per record.

    decode, decode_batches    what a Fetch brought of one partition -> ``pyarrow.RecordBatch``es of the wanted columns
    encode                    Arrow columns of one target partition -> batches ready for a Produce request
    patch_producer            gives a finished batch its producer id, epoch and sequence
    partition_of_keys         the partition of each row, by Kafka's default rule
    RecordColumns             the Arrow columns of one chunk of rows, as ``encode`` and the partitioner take them

Importing this package imports pyarrow and numpy; numba comes with the first call.
"""

from headpond.protocol.records.producer import patch_producer
from headpond.spark.codec.columns import (
    ALL_COLUMNS,
    COLUMN_TYPES,
    DEFAULT_COLUMNS,
    schema_of,
)
from headpond.spark.codec.decode import CHUNK_BYTES, Decoding, decode, decode_batches
from headpond.spark.codec.encode import EncodedBatch, encode
from headpond.spark.codec.errors import CannotEncode
from headpond.spark.codec.inputs import RecordColumns
from headpond.spark.codec.partitioner import partition_of_keys

__all__ = [
    "ALL_COLUMNS",
    "CHUNK_BYTES",
    "COLUMN_TYPES",
    "DEFAULT_COLUMNS",
    "CannotEncode",
    "Decoding",
    "EncodedBatch",
    "RecordColumns",
    "decode",
    "decode_batches",
    "encode",
    "partition_of_keys",
    "patch_producer",
    "schema_of",
]
