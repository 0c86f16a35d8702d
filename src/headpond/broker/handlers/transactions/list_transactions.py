"""ListTransactions: v0-v2.

Behaviour   The transactional ids that this broker coordinates, as far as the client may see them. Unknown states
            are told, and match nothing. COORDINATOR_LOAD_IN_PROGRESS while a partition is being loaded, and
            COORDINATOR_NOT_AVAILABLE where one can't be: a list with holes would be taken for a whole one.
Versions    v1 duration filter (KIP-994) · v2 pattern of the id (KIP-1152), RE2's syntax, on the whole id
Not done    a pattern that is very large is refused, as ``model/patterns.py`` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from headpond.broker.requests.context import Context
from headpond.broker.requests.pacing import A_LOOK
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.coordination.slices import Work, while_wanted
from headpond.coordination.transactions.listing import Filters, parse_states
from headpond.model import BrokerError, ErrorCode
from headpond.model.patterns import InvalidPattern, compiled
from headpond.protocol.schema.list_transactions import ListTransactionsRequest, ListTransactionsResponse

Row = ListTransactionsResponse.TransactionState


async def handle(ctx: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    coordinator = ctx.broker.transactions
    try:
        coordinator.runtime.check_all_loaded()
    except BrokerError as refused:
        return ListTransactionsResponse(error_code=refused.code)
    states, unknown = parse_states(await ctx.counted(request.state_filters))
    filters = Filters(states, await ctx.counted(request.producer_id_filters), request.duration_filter)
    rows = [found for machine in coordinator.runtime.machines() for found in await ctx.finish(machine.list(filters))]
    if request.transactional_id_pattern:
        try:
            matching = while_wanted(_matching(rows, request.transactional_id_pattern), lambda: not _is_gone(ctx))
            matched = await coordinator.slices.finish(matching)
        except InvalidPattern:
            return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
        rows = matched or []
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            found
            async for found in ctx.in_slices(rows, A_LOOK)
            if is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, found.transactional_id)
        ],
    )


def _is_gone(ctx: Context) -> bool:
    return ctx.asker is not None and ctx.asker.closed


def _matching(rows: Sequence[Row], pattern: str) -> Work[list[Row]]:
    """Raises ``InvalidPattern``."""
    by_id = {row.transactional_id: row for row in rows}
    expression = yield partial(compiled, pattern)
    found: list[str] = []
    for portion in expression.portions(list(by_id)):
        found += yield partial(expression.matching, portion)
    return [by_id[each] for each in found]
