"""Every metric that a broker has: name, kind, help and labels. Data only; the page in docs/ is made from it."""

from __future__ import annotations

from headpond.telemetry.families import Family

PARTITION = ("topic", "partition")

# --- requests and connections
REQUESTS = Family("headpond_requests_total", "counter", "Requests served, by API.", ("api",))
RESPONSE_ERRORS = Family(
    "headpond_response_errors_total",
    "counter",
    "Error codes in responses, by API: one for each partition, topic or resource that failed.",
    ("api", "error"),
)
REQUEST_DURATION = Family(
    "headpond_request_duration_seconds",
    "histogram",
    "From a request in memory to its answer ready to be sent, time parked included. Under load some requests "
    "stand for many.",
    ("api",),
)
REQUEST_PARKED = Family(
    "headpond_request_parked_seconds",
    "histogram",
    "How much of it a request was parked: a produce waiting for its flush, a fetch waiting for records.",
    ("api",),
)
PARKED = Family("headpond_parked_requests", "gauge", "Requests that are parked now.", ("api",))
RECEIVED = Family("headpond_received_bytes_total", "counter", "Bytes that came from clients.")
SENT = Family("headpond_sent_bytes_total", "counter", "Bytes handed over to be sent to clients.")
CONNECTIONS = Family("headpond_connections", "gauge", "Connections of clients that are open.")
CONNECTIONS_OPENED = Family("headpond_connections_opened_total", "counter", "Connections that clients have opened.")
CONNECTIONS_REFUSED = Family(
    "headpond_connections_refused_total",
    "counter",
    "Connections closed at once because of max.connections or max.connections.per.ip.",
    ("reason",),
)
CONNECTIONS_DROPPED = Family(
    "headpond_connections_dropped_total",
    "counter",
    "Connections that the broker closed: idle, malformed (not understood), memory (held what others needed), bug.",
    ("reason",),
)
REQUEST_MEMORY = Family(
    "headpond_request_memory_bytes", "gauge", "Memory granted to requests that are partly received."
)
RESPONSE_MEMORY = Family(
    "headpond_response_memory_bytes",
    "gauge",
    "Responses that can't be sent yet: not read, or behind an unanswered request.",
)
FETCH_SESSIONS = Family("headpond_fetch_sessions", "gauge", "Incremental fetch sessions that are open.")

# --- topics and logs
TOPICS = Family("headpond_topics", "gauge", "Topics that this broker has partitions of.")
PARTITIONS = Family("headpond_partitions", "gauge", "Partitions of this broker.")
PARTITIONS_LED = Family("headpond_partitions_led", "gauge", "Partitions that this broker leads.")
PARTITIONS_UNNAMED = Family(
    "headpond_partitions_without_series",
    "gauge",
    'Partitions beyond headpond.metrics.partitions.max: counted together as topic "other".',
)
LOG_SIZE = Family("headpond_log_size_bytes", "gauge", "Size of a partition's log.", PARTITION)
LOG_START = Family("headpond_log_start_offset", "gauge", "First offset of a partition's log.", PARTITION)
LOG_END = Family("headpond_log_end_offset", "gauge", "Offset that the next record of a partition will get.", PARTITION)
HIGH_WATERMARK = Family("headpond_log_high_watermark", "gauge", "Offset below which consumers may read.", PARTITION)
LOG_SEGMENTS = Family("headpond_log_segments", "gauge", "Segments of a partition's log.", PARTITION)
LOG_APPENDED = Family(
    "headpond_log_appended_bytes_total", "counter", "Bytes appended to a partition since the start.", PARTITION
)
PRODUCER_IDS = Family("headpond_producer_ids", "gauge", "Idempotent producers that are remembered, over all logs.")

# --- consumer groups and transactions
GROUPS = Family(
    "headpond_groups", "gauge", "Groups that this broker coordinates, by type and state.", ("type", "state")
)
GROUP_OFFSETS = Family("headpond_group_offsets", "gauge", "Committed offsets that are remembered, over all groups.")
GROUP_LAG = Family(
    "headpond_group_lag",
    "gauge",
    "Offsets between what a group has committed for a partition and its high watermark.",
    ("group", *PARTITION),
)
GROUP_REBALANCES = Family(
    "headpond_group_rebalances_total", "counter", "Rebalances that groups have begun, by type.", ("type",)
)
GROUP_REBALANCE_DURATION = Family(
    "headpond_group_rebalance_duration_seconds",
    "histogram",
    "From the first change until all members have their partitions, the time that the group waits for more included.",
    ("type",),
)
TRANSACTIONS_OPEN = Family(
    "headpond_transactions_open", "gauge", "Transactions that this broker coordinates and that are not over."
)
TRANSACTION_AGE = Family(
    "headpond_transaction_oldest_age_seconds", "gauge", "How long the oldest of them has been open; 0 if there is none."
)

# --- the disk
FSYNC = Family(
    "headpond_fsync_duration_seconds",
    "histogram",
    "Syncs of the group commit: fdatasync of some files, or syncfs when many are dirty.",
    ("call",),
)
COMMIT_LOGS = Family("headpond_group_commit_logs", "histogram", "Logs that one sync made durable.")
COMMIT_RECORDS = Family("headpond_group_commit_records", "histogram", "Records that one sync made durable.")
RETENTION_RUNS = Family("headpond_retention_runs_total", "counter", "Rounds of retention over all logs.")
RETENTION_SEGMENTS = Family("headpond_retention_segments_total", "counter", "Segments that retention has deleted.")
RETENTION_BYTES = Family("headpond_retention_bytes_total", "counter", "Bytes that retention has deleted.")
COMPACTION_RUNS = Family("headpond_compaction_cleanings_total", "counter", "Logs that were compacted, each time.")
COMPACTION_FAILURES = Family("headpond_compaction_failures_total", "counter", "Compactions of a log that failed.")
COMPACTION_STUCK = Family(
    "headpond_compaction_uncleanable_logs", "gauge", "Logs that can't be compacted and are left alone until a restart."
)
COMPACTION_TIME = Family("headpond_compaction_seconds_total", "counter", "Time that compaction has taken.")
COMPACTION_REMOVED = Family(
    "headpond_compaction_removed_records_total", "counter", "Records that compaction has removed."
)
COMPACTION_READ = Family("headpond_compaction_read_bytes_total", "counter", "Bytes that compaction has read.")
COMPACTION_WRITTEN = Family("headpond_compaction_written_bytes_total", "counter", "Bytes that compaction has written.")
RECOVERY_SCANNED = Family(
    "headpond_recovery_scanned_bytes", "gauge", "Bytes of logs that the last start had to read: 0 after a clean stop."
)
FOLDER_FREE = Family("headpond_data_folder_free_bytes", "gauge", "Free bytes of the file system with the data folder.")
FOLDER_SIZE = Family("headpond_data_folder_capacity_bytes", "gauge", "Its size.")
FOLDER_FAILED = Family(
    "headpond_data_folder_failed", "gauge", "1 when a sync has failed and nothing is written any more."
)

# --- the process
READY = Family("headpond_ready", "gauge", "1 while clients are served.")
UPTIME = Family("headpond_uptime_seconds", "gauge", "Time since the broker was started.")
BUILD = Family("headpond_build_info", "info", "Which Headpond this is.", ("version", "python", "broker_id", "flush"))
LOOP_LAG = Family(
    "headpond_loop_lag_seconds", "histogram", "How late a timer of one second comes: how long the loop was held."
)
LOG_MESSAGES = Family("headpond_log_messages_total", "counter", "Log messages, those not written included.", ("level",))
LOG_SUPPRESSED = Family(
    "headpond_log_messages_suppressed_total", "counter", "Log messages not written because there were too many alike."
)
SCRAPE_FAILURES = Family("headpond_scrape_failures_total", "counter", "Metrics that a scrape could not read: bugs.")
PROCESS_CPU = Family("process_cpu_seconds_total", "counter", "User and system CPU time, workers included.")
PROCESS_RSS = Family("process_resident_memory_bytes", "gauge", "Resident memory.")
PROCESS_VIRTUAL = Family("process_virtual_memory_bytes", "gauge", "Virtual memory.")
PROCESS_FDS = Family("process_open_fds", "gauge", "Open file descriptors.")
PROCESS_FDS_MAX = Family("process_max_fds", "gauge", "How many there may be.")
PROCESS_START = Family("process_start_time_seconds", "gauge", "When the process started, since 1970.")

ALL: tuple[Family, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Family))
