"""Which format a scraper wants, from its Accept header (RFC 9110, section 12.5.1)."""

from __future__ import annotations

from headpond.telemetry.exposition import OPEN_METRICS, TEXT, Format


def choose(accept: str) -> Format:
    """OpenMetrics for whoever prefers it, else the text format: also for those who ask for neither, as every exporter
    does, because a scraper that gets something can say what is wrong with it."""
    text, open_metrics = 0.0, 0.0
    for part in accept.split(","):
        media, *parameters = (word.strip().lower() for word in part.split(";"))
        values = dict(parameter.partition("=")[::2] for parameter in parameters)
        quality = _quality(values.get("q", "1"))
        version = values.get("version", "").strip('"')
        if media == "application/openmetrics-text" and version in ("", "1.0.0"):
            open_metrics = max(open_metrics, quality)
        elif (media == "text/plain" and version in ("", "0.0.4")) or media in ("text/*", "*/*"):
            text = max(text, quality)
    return OPEN_METRICS if open_metrics > 0 and open_metrics >= text else TEXT


def _quality(text: str) -> float:
    try:
        return min(1.0, max(0.0, float(text)))
    except ValueError:
        return 0.0
