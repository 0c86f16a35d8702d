"""``make demo``: a broker, clicks, a pipeline that makes sessions of them, the result; and nothing is left of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from headpond.testing import Broker

EXAMPLE = Path(__file__).parent / "clickstream"


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="headpond-demo-") as name, Broker() as broker:
        folder = Path(name)
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
        print(f"a broker listens on {broker.bootstrap_servers}", flush=True)
        environment = {**os.environ, "HEADPOND_BOOTSTRAP_SERVER": broker.bootstrap_servers}
        headpond = f'"{sys.executable}" -m headpond'
        for command in (
            "headpond topics create clicks --partitions 2",
            "python events.py clicks | headpond produce clicks --json",
            "headpond pipeline run pipeline.toml",
            "headpond consume sessions",
            "headpond consume clickstream-dead-letters --show-headers",
            "headpond groups describe clickstream",
            "headpond pipeline status",
        ):
            print(f"\n$ {command}", flush=True)
            line = command.replace("python ", f'"{sys.executable}" ').replace("headpond ", f"{headpond} ")
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
