"""Nobody is in a group of the other kind, and no group changes its kind unless it is empty."""

from __future__ import annotations

from parity import migrations

SETTINGS = migrations.settings("disabled")
SCRIPTS = migrations.SCRIPTS
