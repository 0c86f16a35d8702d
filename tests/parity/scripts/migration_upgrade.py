"""Classic groups become consumer groups; once they are, they stay so until they are empty."""

from __future__ import annotations

from parity import migrations

SETTINGS = migrations.settings("upgrade")
SCRIPTS = migrations.SCRIPTS
