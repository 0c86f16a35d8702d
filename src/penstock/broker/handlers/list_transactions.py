"""ListTransactions: v0-v2.

Behaviour   The transactional ids that this broker coordinates, as far as the asker may see them. States that nobody
            knows are told, and match nothing. COORDINATOR_LOAD_IN_PROGRESS while a partition is being loaded: a list
            with holes would be taken for a whole one.
Versions    v1 duration filter (KIP-994) · v2 pattern of the id (KIP-1152), RE2's syntax, on the whole id
Not done    a pattern that needs more than 4,096 steps, written out, is refused; RE2 takes some more.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.api import Api
from penstock.broker.context import Context
from penstock.broker.security.authorizer import Operation, ResourceType, is_allowed
from penstock.coordination.groups.consumer.regex import InvalidRegex, Regex, Texts
from penstock.coordination.transactions.listing import Filters, parse_states
from penstock.coordination.transactions.machine import TransactionMachine
from penstock.model import ErrorCode
from penstock.protocol.schema.list_transactions import ListTransactionsRequest, ListTransactionsResponse

API = Api(key=66, versions=range(3), name="ListTransactions")

ID_LENGTH_MAX = 32_767
"""What a string of the protocol holds."""


async def handle(ctx: Context, request: ListTransactionsRequest) -> ListTransactionsResponse:
    coordinator = ctx.broker.transactions
    if coordinator.runtime.is_loading:
        return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    try:
        matches = _matcher(request.transactional_id_pattern, coordinator.runtime.machines())
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


def _matcher(pattern: str | None, machines: list[TransactionMachine]) -> Callable[[str], bool] | None:
    if not pattern:
        return None
    alphabet: set[str] = set()
    for machine in machines:
        for transactional_id in machine.ids():
            alphabet.update(transactional_id)
    return Regex(pattern, Texts(frozenset(alphabet), ID_LENGTH_MAX)).matches
