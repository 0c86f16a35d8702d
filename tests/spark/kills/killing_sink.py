"""The sink, with an ear for orders to kill between its steps. What it does is the sink's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from penstock.spark.data_source import PenstockDataSource
from penstock.spark.sink.writers import StreamWriter
from spark.kills.orders import obey
from spark.sink_runs import STEPS, HookedCommit

NAME = "penstock-killing"
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


class KillingWriter(StreamWriter):
    def __init__(self, options: Any, orders: str) -> None:
        super().__init__(options)
        self._orders = orders
        self.protocol = partial(KillingCommit, orders=orders)  # type: ignore[assignment]

    def write(self, iterator: Iterator[Any]) -> Any:
        from penstock.spark.sink.tasks import current_task

        batch_id = current_task().batch_id
        assert batch_id is not None
        obey(self._orders, batch_id, "task-start")

        def listening() -> Iterator[Any]:
            for batch in iterator:
                yield batch
                obey(self._orders, batch_id, "task-middle")

        done = super().write(listening())
        if done.file is not None:
            obey(self._orders, batch_id, "task-staged")
        return done


class KillingSource(PenstockDataSource):
    @classmethod
    def name(cls) -> str:
        return NAME

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        given = dict(self.options)
        orders = given.pop(ORDERS)
        plain = PenstockDataSource(given)
        options = plain._sink_options(schema, "complete", is_refused=overwrite, is_stream=True)
        return KillingWriter(options, orders)
