"""ListTransactions: v0-v2.

Behaviour   The transactional ids that this broker coordinates, as far as the asker may see them. States that nobody
            knows are told, and match nothing. COORDINATOR_LOAD_IN_PROGRESS while a partition is being loaded: a list
            with holes would be taken for a whole one.
Versions    v1 duration filter (KIP-994) · v2 pattern of the id (KIP-1152), RE2's syntax, on the whole id
Not done    a pattern finds only ids made of what topic names may consist of (letters, digits, ``._-``).
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.coordination.groups.consumer.regex import InvalidRegex, Regex
from penstock.coordination.transactions.listing import Filters, parse_states
from penstock.model import ErrorCode
from penstock.protocol.schema.list_transactions import ListTransactionsRequest, ListTransactionsResponse

API = Api(key=66, versions=range(3), name="ListTransactions")


async def handle(ctx: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    coordinator = ctx.broker.transactions
    if coordinator.runtime.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        matches = _matcher(request.transactional_id_pattern)
    except InvalidRegex:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    states, unknown = parse_states(request.state_filters)
    filters = Filters(states, frozenset(request.producer_id_filters), request.duration_filter, matches)
    return ListTransactionsResponse(
        unknown_state_filters=unknown,
        transaction_states=[
            found
            for machine in coordinator.runtime.machines()
            for found in machine.list(filters)
            if is_allowed(ctx, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, found.transactional_id)
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], bool] | None:
    return Regex(pattern).matches if pattern else None
