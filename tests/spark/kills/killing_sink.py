"""The sink, with an ear for orders to kill between its steps. What it does is the sink's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from headpond.spark.data_source import HeadpondDataSource
from headpond.spark.sink.writers import BatchWriter, StreamWriter
from spark.kills.attempts import note_end, this_attempt
from spark.kills.orders import driver_of, note_executor, obey
from spark.sink_runs import STEPS, HookedCommit

NAME = "headpond-killing"
ORDERS = "orders"
TASK_STEPS = ("task-start", "task-middle", "task-staged")
COMMIT_STEPS = ("commit-start", *(f"commit-{step.replace(' ', '-')}" for step in STEPS))


class KillingCommit(HookedCommit):
    def __init__(self, *arguments: Any, orders: str) -> None:
        super().__init__(*arguments)
        self._orders = orders

    def run(self) -> None:
        obey(self._orders, self.write.number, "commit-start")
        super().run()

    def _after(self, step: str) -> None:
        obey(self._orders, self.write.number, f"commit-{step.replace(' ', '-')}")


class KillingStreamWriter(StreamWriter):
    def __init__(self, options: Any, orders: str) -> None:
        super().__init__(options)
        self._orders = orders
        self.protocol = partial(KillingCommit, orders=orders)  # type: ignore[assignment]

    def write(self, iterator: Iterator[Any]) -> Any:
        from headpond.spark.sink.tasks import current_task

        batch_id = current_task().batch_id
        assert batch_id is not None
        return _write_obediently(super().write, iterator, self._orders, batch_id)


class KillingBatchWriter(BatchWriter):
    """The micro-batch of its orders is the version of the write."""

    def __init__(self, options: Any, orders: str) -> None:
        super().__init__(options)
        self._orders = orders
        self.protocol = partial(KillingCommit, orders=orders)  # type: ignore[assignment]

    def write(self, iterator: Iterator[Any]) -> Any:
        return _write_obediently(super().write, iterator, self._orders, self._batch_write.number)


def _write_obediently(
    write: Callable[[Iterator[Any]], Any], iterator: Iterator[Any], orders: str, batch_id: int
) -> Any:
    note_executor(orders)
    attempt = this_attempt(batch_id, driver_of(orders))
    is_orphan = obey(orders, batch_id, "task-start", attempt)

    def listening() -> Iterator[Any]:
        nonlocal is_orphan
        for batch in iterator:
            yield batch
            is_orphan |= obey(orders, batch_id, "task-middle", attempt)

    done = write(listening())
    if done.file is not None:
        is_orphan |= obey(orders, batch_id, "task-staged", attempt)
    if not is_orphan:
        note_end(orders, attempt)
    return done


class KillingSource(HeadpondDataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def writer(self, schema: Any, overwrite: bool) -> Any:
        options, orders = self._obedient_options(schema, is_refused=overwrite, is_stream=False)
        return KillingBatchWriter(options, orders)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        options, orders = self._obedient_options(schema, is_refused=overwrite, is_stream=True)
        return KillingStreamWriter(options, orders)

    def _obedient_options(self, schema: Any, *, is_refused: bool, is_stream: bool) -> tuple[Any, str]:
        given = dict(self.options)
        orders = given.pop(ORDERS)
        plain = HeadpondDataSource(given)
        return plain._sink_options(schema, "overwrite", is_refused=is_refused, is_stream=is_stream), orders
