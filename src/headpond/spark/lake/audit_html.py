"""The report of an audit as one web page: no script, nothing from elsewhere, readable in the dark. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from headpond.spark.lake.audit import TopicAudit
from headpond.spark.lake.audit_findings import shown_key
from headpond.spark.lake.svg import bar_chart

_STYLE = """
:root{color-scheme:light dark;--bar:#3b7dd8;--line:#8884;--bad:#c62828;--good:#2e7d32}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:0}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}h3{margin:1.5rem 0 .3rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;display:block;overflow-x:auto}
th,td{padding:.2rem .7rem;text-align:right;border-bottom:1px solid var(--line)}
svg{max-width:100%;height:auto;font:12px system-ui,sans-serif}svg rect{fill:var(--bar)}svg text{fill:currentColor}
.bad{color:var(--bad);font-weight:600}.good{color:var(--good);font-weight:600}ul{padding-left:1.2rem}
""".strip()


def page(audits: Sequence[TopicAudit], *, cluster: str, made_at: str) -> str:
    """``made_at``: when, in words."""
    bodies = "".join(_topic(audit) for audit in audits)
    title = f"Audit of {', '.join(audit.topic for audit in audits)}"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(cluster)}, {escape(made_at)}</p>{bodies}</body></html>\n"
    )


def _topic(audit: TopicAudit) -> str:
    verdict = '<p class="good">No faults found.</p>' if audit.is_well else '<p class="bad">Faults found.</p>'
    return "".join(
        [
            f"<h2>{escape(audit.topic)}</h2>{verdict}",
            _findings(audit),
            _facts(audit),
            "<h3>Records per partition</h3>",
            bar_chart(
                [(str(one.partition), one.batches.records) for one in audit.partitions], title="Records per partition"
            ),
            "<h3>Sizes of records (key and value, bytes)</h3>",
            bar_chart(size_bars(audit), title="Sizes of records"),
            f"<h3>Most frequent keys{'' if audit.are_top_keys_exact else ' (about)'}</h3>",
            bar_chart([(shown_key(one.key), one.records) for one in audit.top_keys], title="Most frequent keys"),
            "<h3>Partitions</h3>",
            _partitions(audit),
        ]
    )


def _findings(audit: TopicAudit) -> str:
    rows = "".join(
        f"<li{' class=bad' if finding.is_fault else ''}>{escape(finding.sentence)}</li>" for finding in audit.findings
    )
    return f"<ul>{rows}</ul>" if rows else ""


def _facts(audit: TopicAudit) -> str:
    rows = audit.partitions
    return _table(
        ["records", "batches", "bytes", "keys (about)", "no key", "tombstones", "late", "producers", "cleanup.policy"],
        [
            [
                f"{audit.records:,}",
                f"{sum(one.batches.batches for one in rows):,}",
                f"{audit.size_bytes:,}",
                f"{audit.distinct_keys:,}",
                f"{sum(one.rows.null_keys for one in rows):,}",
                f"{sum(one.rows.null_values for one in rows):,}",
                f"{sum(one.rows.late_records for one in rows):,}",
                f"{sum(one.batches.producers for one in rows):,}",
                audit.cleanup_policy,
            ]
        ],
    )


def _partitions(audit: TopicAudit) -> str:
    return _table(
        [
            "partition",
            "from",
            "end",
            "records",
            "batches",
            "missing",
            "twice",
            "aborted",
            "open",
            "commit markers",
            "abort markers",
            "late",
            "largest",
        ],
        [
            [
                f"{number:,}"
                for number in (
                    one.partition,
                    one.from_offset,
                    one.end_offset,
                    one.batches.records,
                    one.batches.batches,
                    one.batches.missing,
                    one.batches.duplicate_records,
                    one.batches.aborted_records,
                    one.batches.open_records,
                    one.batches.commit_markers,
                    one.batches.abort_markers,
                    one.rows.late_records,
                    one.rows.largest_bytes,
                )
            ]
            for one in audit.partitions
        ],
    )


def size_bars(audit: TopicAudit) -> list[tuple[str, int]]:
    """(sizes, how many records) from the smallest that there is to the largest."""
    totals = [sum(counts) for counts in zip(*(one.rows.sizes for one in audit.partitions), strict=True)]
    used = [number for number, count in enumerate(totals) if count]
    if not used:
        return []
    return [(_span(number), totals[number]) for number in range(used[0], used[-1] + 1)]


def _span(bucket: int) -> str:
    if bucket < 2:
        return str(bucket)
    return f"{1 << (bucket - 1):,} to {(1 << bucket) - 1:,}"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
