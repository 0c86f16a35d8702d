"""``make demo``: a broker, clicks, a pipeline that makes sessions of them, the result; and nothing is left of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from penstock.testing import Broker

EXAMPLE = Path(__file__).parent / "clickstream"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="penstock-demo-") as name, Broker() as broker:
        folder = Path(name)
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
        print(f"a broker listens on {broker.bootstrap_servers}", flush=True)
        environment = {**os.environ, "PENSTOCK_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        penstock = f'"{sys.executable}" -m penstock'
        for command in (
            "penstock topics create clicks --partitions 2",
            "python events.py clicks | penstock produce clicks --json",
            "penstock pipeline run pipeline.toml",
            "penstock consume sessions",
            "penstock consume clickstream-dead-letters --show-headers",
            "penstock groups describe clickstream",
            "penstock pipeline status",
        ):
            print(f"\n$ {command}", flush=True)
            line = command.replace("python ", f'"{sys.executable}" ').replace("penstock ", f"{penstock} ")
            done = subprocess.run(line, shell=True, cwd=folder, env=environment, check=False)
            if done.returncode:
                return done.returncode
        _show_table(folder / "lake" / "sessions")
    print("\nthe broker has stopped, and its files are gone")
    return 0


def _show_table(folder: Path) -> None:
    import pandas

    print("\n>>> pandas.read_parquet('lake/sessions')")
    print(pandas.read_parquet([str(file) for file in sorted(folder.glob("*.parquet"))]).to_string(index=False))


if __name__ == "__main__":
    sys.exit(main())
