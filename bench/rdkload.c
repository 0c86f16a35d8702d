/* rdkload: bulk load from a librdkafka client.
 *
 *   rdkload produce --bootstrap H:P --topic T [--partitions N] [--record-bytes N] [--seconds S | --bytes N]
 *                   [--transaction-seconds S] [--set name=value ...]
 *   rdkload consume --bootstrap H:P --topic T [--partitions N] [--passes N] [--set name=value ...]
 *
 * produce hands records over in slices, partition after partition, without copying them, and asks for reports of failures
 * only: whatever the client saves is load for the broker. The clock starts when a first record has been answered, so that it has
 * neither the connecting nor the half second after which a librdkafka that was not connected yet asks again for its producer id;
 * that record is not counted, and --bytes come after it. The clock stops when every record is answered. With
 * --transaction-seconds (and a transactional.id) it commits and begins anew that often, and the clock stops with the last commit.
 * consume reads all partitions from the beginning to their end, --passes times, each pass from its first fetch on.
 * Prints one JSON object: records and bytes (values only) that were timed, seconds, mb_per_s (10^6), total_bytes with those
 * that were not timed, errors, and cpu_s, what the client itself has used from its start on.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "rdk.h"

enum { COMMIT_TIMEOUT_MS = 60000, SLICE_RECORDS_MAX = 1000, SLICE_BYTES = 256 << 10, FLUSH_TIMEOUT_MS = 60000, PASS_IDLE_MAX_S = 30, PARTITIONS_MAX = 1024 };

static const char *topic = "bench";
static int partitions = 4, passes = 1;
static size_t record_bytes = 1000;
static double seconds_max = 5, transaction_seconds;
static int64_t bytes_max;
static long errors;
static int first_error;
static volatile sig_atomic_t interrupted;

static void on_signal(int number) { (void)number; interrupted = 1; }

static void die(const char *what, const char *why) { fprintf(stderr, "rdkload: %s: %s\n", what, why); exit(1); }

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double own_cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char why[512];
  if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) die(name, why);
}

static void set_pair(rd_kafka_conf_t *conf, char *pair) {
  char *equals = strchr(pair, '=');
  if (!equals) die("--set needs name=value", pair);
  *equals = 0;
  set(conf, pair, equals + 1);
}

static void report(double records, double bytes, double seconds, double total_bytes) {
  printf("{\"records\": %.0f, \"bytes\": %.0f, \"seconds\": %.6f, \"mb_per_s\": %.2f, \"total_bytes\": %.0f, \"cpu_s\": %.6f, \"errors\": %ld, \"first_error\": \"%s\"}\n",
         records, bytes, seconds, bytes / seconds / 1e6, total_bytes, own_cpu_s(), errors, first_error ? rd_kafka_err2str(first_error) : "");
}

/* ---- produce ------------------------------------------------------------------------------------------------------- */

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
  (void)rk; (void)opaque;
  if (!message->err) return;
  errors++;
  first_error = message->err;
}

static void check(const char *what, rd_kafka_error_t *error) {
  if (error) die(what, rd_kafka_error_string(error));
}

/* Connected, with a producer id if there is to be one: one record has been there and back. */
static void get_ready(rd_kafka_t *rk, rd_kafka_topic_t *rkt, char *value) {
  rd_kafka_message_t first = {.payload = value, .len = record_bytes};
  if (!rd_kafka_produce_batch(rkt, 0, 0, &first, 1)) die("first record", rd_kafka_err2str(first.err));
  for (double started = now_s(); rd_kafka_flush(rk, 100) && !interrupted;)
    if (now_s() - started > FLUSH_TIMEOUT_MS / 1e3) die("first record", "not answered");
  if (errors) die("first record", rd_kafka_err2str(first_error));
}

static void produce(rd_kafka_t *rk) {
  static rd_kafka_message_t slice[SLICE_RECORDS_MAX];
  char *value = malloc(record_bytes);
  memset(value, 'x', record_bytes);
  size_t slice_records = SLICE_BYTES / record_bytes;
  if (slice_records < 1) slice_records = 1;
  if (slice_records > SLICE_RECORDS_MAX) slice_records = SLICE_RECORDS_MAX;
  rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
  if (transaction_seconds > 0) {
    check("init_transactions", rd_kafka_init_transactions(rk, COMMIT_TIMEOUT_MS));
    check("begin_transaction", rd_kafka_begin_transaction(rk));
  }
  get_ready(rk, rkt, value);
  double started = now_s(), transaction_started = started;
  int64_t records = 0;
  for (int p = 0; !interrupted && (bytes_max ? records * (int64_t)record_bytes < bytes_max : now_s() - started < seconds_max);
       p = (p + 1) % partitions) {
    for (size_t k = 0; k < slice_records; k++) slice[k] = (rd_kafka_message_t){.payload = value, .len = record_bytes};
    rd_kafka_message_t *next = slice;
    for (int left = (int)slice_records; left > 0 && !interrupted;) {
      int taken = rd_kafka_produce_batch(rkt, p, 0, next, left);
      records += taken;
      if (taken == left) break;
      /* produce_batch does not stop at the first refusal: pack the refused ones together and offer them again. */
      int refused = 0;
      for (int k = 0; k < left; k++) {
        if (!next[k].err) continue;
        if (next[k].err != RD_KAFKA_RESP_ERR__QUEUE_FULL) die("produce", rd_kafka_err2str(next[k].err));
        slice[refused++] = (rd_kafka_message_t){.payload = value, .len = record_bytes};
      }
      next = slice; left = refused;
      rd_kafka_poll(rk, 1);
    }
    rd_kafka_poll(rk, 0);
    if (transaction_seconds > 0 && now_s() - transaction_started >= transaction_seconds) {
      check("commit_transaction", rd_kafka_commit_transaction(rk, COMMIT_TIMEOUT_MS));
      check("begin_transaction", rd_kafka_begin_transaction(rk));
      transaction_started = now_s();
    }
  }
  if (!interrupted && transaction_seconds > 0) check("commit_transaction", rd_kafka_commit_transaction(rk, COMMIT_TIMEOUT_MS));
  else if (!interrupted) rd_kafka_flush(rk, FLUSH_TIMEOUT_MS);
  double seconds = now_s() - started;
  long unanswered = interrupted ? 0 : rd_kafka_outq_len(rk);
  errors += unanswered;
  double acked_bytes = (double)(records - errors) * (double)record_bytes;
  report((double)records, acked_bytes, seconds, acked_bytes + (double)record_bytes);
}

/* ---- consume ------------------------------------------------------------------------------------------------------- */

static struct { int64_t records, bytes; int at_end; char ended[PARTITIONS_MAX]; } pass;

static void on_message(rd_kafka_message_t *message, void *opaque) {
  (void)opaque;
  if (!message->err) {
    pass.records++;
    pass.bytes += (int64_t)message->len;
  } else if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
    if (!pass.ended[message->partition]++) pass.at_end++;
  } else {
    errors++;
    first_error = message->err;
  }
}

static void consume(rd_kafka_t *rk) {
  double seconds = 0, records = 0, bytes = 0, total_bytes = 0;
  rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
  for (int k = 0; k < passes && !interrupted; k++) {
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    memset(&pass, 0, sizeof pass);
    double started = now_s(), last_progress = started, first_record = 0;
    for (int p = 0; p < partitions; p++)
      if (rd_kafka_consume_start_queue(rkt, p, RD_KAFKA_OFFSET_BEGINNING, queue)) die("consume_start", strerror(errno));
    while (pass.at_end < partitions && !interrupted) {
      int served = rd_kafka_consume_callback_queue(queue, 200, on_message, NULL);
      double now = now_s();
      if (served > 0) last_progress = now;
      if (!first_record && pass.records) first_record = started = now; /* what came with the first call is not counted... */
      if (first_record == now) { records -= (double)pass.records; bytes -= (double)pass.bytes; } /* ...nor timed */
      if (now - last_progress > PASS_IDLE_MAX_S) die("consume", "no progress");
    }
    seconds += now_s() - started;
    records += (double)pass.records;
    bytes += (double)pass.bytes;
    total_bytes += (double)pass.bytes;
    for (int p = 0; p < partitions; p++) rd_kafka_consume_stop(rkt, p);
    rd_kafka_queue_destroy(queue);
  }
  report(records, bytes, seconds, total_bytes);
}

int main(int argc, char **argv) {
  struct sigaction stop = {.sa_handler = on_signal};
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGINT, &stop, NULL);
  if (argc < 2 || (strcmp(argv[1], "produce") && strcmp(argv[1], "consume"))) die("usage", "rdkload produce|consume ...");
  int producing = !strcmp(argv[1], "produce");
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "broker.address.family", "v4");
  set(conf, producing ? "delivery.report.only.error" : "enable.partition.eof", "true");
  if (producing) rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  for (int k = 2; k + 1 < argc; k += 2) {
    char *name = argv[k], *value = argv[k + 1];
    if (!strcmp(name, "--bootstrap")) set(conf, "bootstrap.servers", value);
    else if (!strcmp(name, "--topic")) topic = value;
    else if (!strcmp(name, "--partitions")) partitions = atoi(value);
    else if (!strcmp(name, "--record-bytes")) record_bytes = (size_t)atol(value);
    else if (!strcmp(name, "--seconds")) seconds_max = atof(value);
    else if (!strcmp(name, "--transaction-seconds")) transaction_seconds = atof(value);
    else if (!strcmp(name, "--bytes")) bytes_max = atoll(value);
    else if (!strcmp(name, "--passes")) passes = atoi(value);
    else if (!strcmp(name, "--set")) set_pair(conf, value);
    else die("unknown argument", name);
  }
  if (partitions < 1 || partitions > PARTITIONS_MAX || record_bytes < 1 || passes < 1) die("arguments", "out of range");
  char why[512];
  rd_kafka_t *rk = rd_kafka_new(producing ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER, conf, why, sizeof why);
  if (!rk) die("client", why);
  if (producing) produce(rk);
  else consume(rk);
  fflush(stdout);
  _Exit(0); /* an orderly end of the client could wait for a broker that the bench has just killed */
}
