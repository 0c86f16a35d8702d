"""`python -m bench`: runs the scenarios and writes the table, the JSON and the Markdown. See README.md."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import platform
import resource
import signal
import sys
import time
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from . import before, report, servers
from .harness import Bench, Failures, Plan, filesystem_of
from .measure import REACHED, Outcome, Samples, Scenario
from .scenarios import ALL
from .tools import BUILD, PROGRAMS, Tools


def main() -> int:
    options = arguments()
    if options.list:
        print("\n".join(f"{scenario.name:<26} {scenario.title}" for scenario in ALL))
        return 0
    chosen = choose(options.only)
    kinds = options.servers.split(",")
    if unknown := [name for name in kinds if name not in servers.KINDS]:
        raise SystemExit(f"unknown server {', '.join(unknown)}; there are {', '.join(servers.KINDS)}")
    plan = Plan.short() if options.quick else Plan()
    if options.repetitions:
        plan = replace(plan, repetitions=options.repetitions)
    servers.Headpond.settings = tuple(options.set)
    servers.Before.commit = options.before
    only_one = be_the_only_one()  # held until the process ends
    if only_one is None:
        raise SystemExit("another bench is running: the two would measure each other")
    allow_many_files()
    # Ended from outside, the run still ends its servers: SIGTERM takes the same way out as Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tools = Tools()
    bench = Bench(plan, tools, kinds, options.data_root, say)
    say(f"data in {bench.data} ({filesystem_of(bench.data)})")
    if filesystem_of(bench.data) == "tmpfs":
        say("! the data folder is on tmpfs: the fsync figures will say nothing; use --data-root")
    for program in PROGRAMS:
        if reason := tools.available(program):
            say(f"! {program} left out: {reason}")
    outcomes: list[Outcome] = []
    started = time.strftime("%Y-%m-%d-%H%M%S")
    written = None
    try:
        for scenario in chosen:
            outcomes.append(run(bench, scenario))
            # Written after every scenario: a long run that is interrupted leaves what it has.
            written = write(options.out, started, plan, outcomes, bench)
    except KeyboardInterrupt:
        say("interrupted")
    finally:
        bench.close()
    if written is None:
        return 1
    content = json.loads(written.read_text())
    print("\n" + report.text(content))
    print(f"\n{written}\n{written.with_suffix('.md')}")
    return 0 if not options.strict or all_hold(content) else 1


def run(bench: Bench, scenario: Scenario) -> Outcome:
    say(f"== {scenario.name}: {scenario.title}")
    bench.left_out = []
    samples: Samples = {}
    try:
        missing = [f"{need}: {reason}" for need in scenario.needs if (reason := bench.tools.available(need))]
        if missing:
            bench.note(f"scenario left out: {'; '.join(missing)}")
        else:
            samples = scenario.run(bench)
    except Failures as failure:
        bench.note(f"the scenario failed: {failure}")
    outcome = Outcome(scenario, samples, bench.left_out)
    say(report.scenario_text(outcome.as_json()))
    return outcome


def write(folder: Path, started: str, plan: Plan, outcomes: list[Outcome], bench: Bench) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{started}.json"
    content = {
        "date": started[:10],
        "commit": before.revision(),
        "before": servers.Before.commit if servers.Before.name in bench.kinds else None,
        "machine": machine(bench),
        "versions": versions(bench),
        "plan": asdict(plan),
        "headpond_settings": list(servers.Headpond.settings),
        "scenarios": [outcome.as_json() for outcome in outcomes],
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    path.with_suffix(".md").write_text(report.markdown(content))
    return path


def machine(bench: Bench) -> dict[str, Any]:
    cpu = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "cores": os.cpu_count(),
        "cpu": cpu[0] if cpu else platform.machine(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
        "kernel": platform.release(),
        "filesystem": filesystem_of(bench.data),
        "python": platform.python_version(),
        "load_1_min": os.getloadavg()[0],
    }


def versions(bench: Bench) -> dict[str, str]:
    """Of what is measured and of what measures it."""
    found = {"Headpond": metadata.version("headpond")}
    if servers.Kafka.name in bench.kinds or servers.KafkaFlushing.name in bench.kinds:
        found["Apache Kafka"] = servers.kafka_version()
    try:
        found["confluent-kafka"] = metadata.version("confluent-kafka")
    except metadata.PackageNotFoundError:
        pass
    return found


def all_hold(content: dict[str, Any]) -> bool:
    return all(bar["verdict"] in REACHED for scenario in content["scenarios"] for bar in scenario["bars"])


def choose(only: str) -> list[Scenario]:
    if not only:
        return list(ALL)
    wanted = only.split(",")
    unknown = [part for part in wanted if not any(part in scenario.name for scenario in ALL)]
    if unknown:
        raise SystemExit(f"no scenario is called {', '.join(unknown)}; --list shows them")
    return [scenario for scenario in ALL if any(part in scenario.name for part in wanted)]


def be_the_only_one() -> IO[str] | None:
    BUILD.mkdir(exist_ok=True)
    lock = (BUILD / ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    return lock


def allow_many_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def say(text: str) -> None:
    print(text, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Headpond side by side with its peers.")
    parser.add_argument("--quick", action="store_true", help="a short run, for a look")
    parser.add_argument("--only", default="", metavar="NAME,...", help="scenarios whose name contains one of these")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument(
        "--servers",
        default=",".join(servers.ORDINARY),
        metavar="NAME,...",
        help="default: %(default)s; also: before, which is Headpond at an earlier commit",
    )
    parser.add_argument("--before", default=before.COMMIT, metavar="COMMIT", help="of 'before'; default: %(default)s")
    parser.add_argument("--repetitions", type=int, default=0, metavar="N", help="runs per server")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting for Headpond")
    parser.add_argument("--data-root", type=Path, default=BUILD, help="data folders are made and removed in here")
    parser.add_argument("--out", type=Path, default=report.RESULTS, help="results go here")
    parser.add_argument("--strict", action="store_true", help="exit 1 when a bar does not hold")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
