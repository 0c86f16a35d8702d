"""UpdateFeatures: v0-v2.

Behaviour   Finalizes levels of features within what this program understands (``cluster/features.py``), all that are
            asked for or none. A lower level must be asked for as a downgrade.
Versions    v0 knows upgrades only: its flag that allows a downgrade gets lost on the way to Kafka's controller, too
            · v1 the kind of change, and only trying · v2 no result for each feature: it never said more.
"""

from __future__ import annotations

from headpond.broker.requests.context import Context
from headpond.broker.security.authorizer import Operation, ResourceType, is_allowed
from headpond.cluster.features import ChangeKind, FeatureChange
from headpond.model import BrokerError, ErrorCode
from headpond.protocol.schema.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse

KIND_SINCE = 1
NO_RESULTS_SINCE = 2

Result = UpdateFeaturesResponse.UpdatableFeatureResult


async def handle(ctx: Context, request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    if not is_allowed(ctx, Operation.ALTER, ResourceType.CLUSTER):
        return UpdateFeaturesResponse(
            error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, error_message="Cluster authorization failed."
        )
    changes = [
        FeatureChange(
            each.feature,
            each.max_version_level,
            each.upgrade_type if ctx.version >= KIND_SINCE else ChangeKind.UPGRADE,
        )
        async for each in ctx.in_slices(request.feature_updates)
    ]
    try:
        await ctx.broker.metadata_writer.update_features(
            changes, validate_only=request.validate_only, timeout_ms=request.timeout_ms
        )
    except BrokerError as refused:
        message = refused.message
        if refused.code is ErrorCode.INVALID_UPDATE_VERSION:
            message = f"The update failed for all features since the following feature had an error: {message}"
        return UpdateFeaturesResponse(error_code=refused.code, error_message=message)
    results = [Result(feature=each.name, error_message="NONE") async for each in ctx.in_slices(changes)]
    return UpdateFeaturesResponse(error_message=None, results=results if ctx.version < NO_RESULTS_SINCE else [])
