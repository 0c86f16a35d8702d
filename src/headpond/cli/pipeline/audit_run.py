"""What ``headpond pipeline audit`` does: walks the topics, compares if asked to, writes the report."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headpond.cli.common.command_config import options_in
from headpond.cli.common.failures import FAILED, OK, WrongUsage, counted
from headpond.cli.common.output import Column, bytes_in_words, note, print_json, print_line, print_table, time_in_words
from headpond.cli.pipeline.archive_run import source_options
from headpond.cli.pipeline.spark import Sessions, broker_address, in_one_sentence
from headpond.cli.pipeline.tasks_bar import tasks_bar
from headpond.client import parse_bootstrap
from headpond.runtime.clock import SystemClock

if TYPE_CHECKING:
    from headpond.spark.lake.audit import AuditSettings, TopicAudit, TopicPlan


def audit(options: argparse.Namespace) -> int:
    with in_one_sentence(options):
        from headpond.spark.lake.audit import Audit, plan_topics

        settings = _settings(options)
        plans = plan_topics(settings.source, settings.topics)
        if options.dry_run:
            _show_plan(plans, options)
            return OK
        if settings.against is not None:
            plan_topics(settings.against, [options.other_name] if options.other_name else settings.topics)
        with Sessions(options, "audit") as sessions:
            session = sessions.get()
            work, audits = Audit(session, settings), []
            for plan in plans:
                with tasks_bar(session, f"auditing {plan.topic}, {counted(plan.offsets, 'record')}"):
                    audits.append(work.run(plan))
        if options.report is not None:
            _write_report(audits, options)
        _show(audits, options)
    return OK if all(one.is_well for one in audits) else FAILED


def _settings(options: argparse.Namespace) -> AuditSettings:
    from headpond.spark.lake.audit import AuditSettings

    against = None
    if options.against is not None:
        try:
            parse_bootstrap(options.against)
        except ValueError as error:
            raise WrongUsage(f"--against: {error}") from None
        # What opens one cluster is not shown to another.
        file = options.against_command_config
        against = _source(options, options.against, {} if file is None else options_in(file))
    return AuditSettings(
        source=_source(options, broker_address(options)),
        topics=list(dict.fromkeys(options.topics)),
        top=options.top,
        against=against,
        against_lake=options.against_lake,
        other_name=options.other_name,
        by=options.by,
    )


def _source(options: argparse.Namespace, address: str, security: Mapping[str, str] | None = None) -> dict[str, str]:
    given = source_options(options, address, security=security)
    del given["subscribe"]
    return given


def _show_plan(plans: list[TopicPlan], options: argparse.Namespace) -> None:
    rows = [{"topic": plan.topic, "partitions": len(plan.log), "offsets": plan.offsets} for plan in plans]
    if options.json:
        print_json({"dry_run": True, "topics": rows})
        return
    print_table(
        [Column("topic"), Column("partitions", True), Column("to read", True)], [list(row.values()) for row in rows]
    )
    print_line(f"would read up to {counted(sum(plan.offsets for plan in plans), 'record')}")


def _write_report(audits: list[TopicAudit], options: argparse.Namespace) -> None:
    from headpond.runtime.files import DiskFileSystem
    from headpond.spark.lake.audit_html import page

    made_at = time_in_words(SystemClock().now_ms())
    text = page(audits, cluster=broker_address(options), made_at=made_at)
    DiskFileSystem().write_file_atomically(options.report, text.encode())
    if not options.json:
        note(f"report written to {options.report}")


def _show(audits: list[TopicAudit], options: argparse.Namespace) -> None:
    if options.json:
        print_json({"is_well": all(one.is_well for one in audits), "topics": [_as_json(one) for one in audits]})
        return
    for one in audits:
        print_table(
            [Column(title, True) for title in ("partition", "records", "batches", "missing", "twice", "late", "size")],
            [
                [
                    part.partition,
                    part.batches.records,
                    part.batches.batches,
                    part.batches.missing,
                    part.batches.duplicate_records,
                    part.rows.late_records,
                    bytes_in_words(part.batches.size_bytes),
                ]
                for part in one.partitions
            ],
            title=one.topic,
        )
        for finding in one.findings:
            print_line(f"{'FAULT: ' if finding.is_fault else ''}{finding.sentence}")
        verdict = "no faults" if one.is_well else counted(sum(f.is_fault for f in one.findings), "fault")
        keys = counted(one.distinct_keys, "key")
        print_line(f"{one.topic}: {verdict} in {counted(one.records, 'record')}, about {keys}")


def _as_json(one: TopicAudit) -> dict[str, Any]:
    """For scripts: keys as text, and no registers."""
    import msgspec

    from headpond.spark.lake.audit_findings import shown_key

    document: dict[str, Any] = msgspec.to_builtins(one)
    document["is_well"] = one.is_well
    document["top_keys"] = [{"key": shown_key(key.key), "records": key.records} for key in one.top_keys]
    for part, facts in zip(document["partitions"], one.partitions, strict=True):
        part["rows"].pop("registers")
        part["rows"].pop("top")
        part["rows"]["sizes"] = [
            {"bytes_from": 1 << bucket >> 1, "records": records}
            for bucket, records in enumerate(facts.rows.sizes)
            if records
        ]
        part["batches"]["missing"] = facts.batches.missing
    if one.comparison is not None:
        document["comparison"]["is_equal"] = one.comparison.is_equal
    return document
