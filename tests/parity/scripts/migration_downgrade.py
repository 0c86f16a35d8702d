"""Consumer groups take classic members and become classic groups when only those are left; none comes the other way."""

from __future__ import annotations

from parity import migrations

SETTINGS = migrations.settings("downgrade")
SCRIPTS = migrations.SCRIPTS
