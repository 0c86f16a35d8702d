"""One hash for each record of a chunk: of its key, value, headers and timestamp."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headpond.spark.codec.inputs import ByteColumn, RecordColumns
from headpond.spark.lake.audit_kernels import Hashes, hash_column, hash_records


def hashes_of(rows: pa.RecordBatch) -> Hashes:
    columns = RecordColumns.of(
        key=rows.column("key"), value=rows.column("value"), headers=rows.column("headers"), now_ms=0
    )
    times_us = rows.column("timestamp").cast(pa.int64()).to_numpy(zero_copy_only=False)
    hashes = np.empty(rows.num_rows, np.uint64)
    hash_records(
        _hashed(columns.key),
        _hashed(columns.value),
        columns.headers.starts,
        columns.headers.ends,
        _hashed(columns.headers.names),
        _hashed(columns.headers.values),
        np.ascontiguousarray(times_us, np.int64),
        hashes,
    )
    return hashes


def _hashed(column: ByteColumn) -> Hashes:
    hashes = np.empty(len(column.sizes), np.uint64)
    hash_column(column.data, column.starts, column.sizes, hashes)
    return hashes
