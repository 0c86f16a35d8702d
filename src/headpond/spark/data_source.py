"""The data source that Spark finds by its name, ``headpond``: columns, who reads, and who writes.

Spark finds it through the package ``pyspark_headpond``, or ``spark.dataSource.register(HeadpondDataSource)``. Importing
this imports pyspark's data source classes, and neither pyarrow nor numba.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from headpond.model.nearest import did_you_mean
from headpond.spark.kafka.errors import WrongOption
from headpond.spark.reading.options import parse_include_headers, parse_options
from headpond.spark.sink.columns import check_columns
from headpond.spark.sink.errors import WrongWrite
from headpond.spark.sink.options import SinkOptions, parse_sink_options
from headpond.spark.versions import wrong_pyspark

COLUMNS = {
    "key": "binary",
    "value": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
    "timestampType": "int",
}
HEADERS = {"headers": "array<struct<key:string,value:binary>>"}
"""Only with ``includeHeaders``."""


class WrongSpark(RuntimeError):
    """The PySpark of this session is not the one that Headpond works with."""


class HeadpondDataSource(DataSource):
    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Refuses another PySpark here, before it is asked for something that it does not have."""
        if sentence := wrong_pyspark():
            raise WrongSpark(sentence)
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return "headpond"

    def schema(self) -> str:
        return ", ".join(f"{name} {kind}" for name, kind in self._columns().items())

    def reader(self, schema: StructType) -> DataSourceReader:
        from headpond.spark.source.batch import BatchReader

        return BatchReader(parse_options(self.options, is_stream=False), self._checked(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from headpond.spark.source.stream import StreamReader

        return StreamReader(parse_options(self.options, is_stream=True), self._checked(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from headpond.spark.sink.writers import BatchWriter

        return BatchWriter(self._sink_options(schema, 'mode("overwrite")', is_refused=overwrite, is_stream=False))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from headpond.spark.sink.writers import StreamWriter

        return StreamWriter(self._sink_options(schema, 'outputMode("complete")', is_refused=overwrite, is_stream=True))

    def _sink_options(self, schema: StructType, mode: str, *, is_refused: bool, is_stream: bool) -> SinkOptions:
        if is_refused:
            more = 'outputMode("append"), or foreachBatch' if is_stream else 'mode("append")'
            raise WrongWrite(f"{mode} would replace what a topic holds, and a topic only grows: use {more}")
        options = parse_sink_options(self.options, is_stream=is_stream)
        check_columns(schema.fields, options.topic)
        return options

    def _columns(self) -> dict[str, str]:
        return {**COLUMNS, **(HEADERS if parse_include_headers(self.options) else {})}

    def _checked(self, schema: StructType) -> list[str]:
        """The names of the columns that the user wants: some of ours, in any order, each with our type."""
        known = self._columns()
        for field in schema.fields:
            if field.name not in known:
                more = (
                    "; it comes with the option includeHeaders"
                    if field.name in HEADERS
                    else did_you_mean(field.name, known)
                )
                raise WrongOption(f"a topic has no column {field.name}, only {', '.join(known)}{more}")
            kind = field.dataType.simpleString()
            if kind != known[field.name]:
                raise WrongOption(f"column {field.name} is {known[field.name]}, not {kind}: cast it after reading")
        return schema.fieldNames()
