/* The few names of librdkafka's stable C interface that the bench uses.
 *
 * The confluent-kafka wheel carries librdkafka as a shared library, without headers. With these declarations our programs
 * link to that very library, so the load comes from the client that Python users have and nothing has to be installed.
 */
#ifndef HEADPOND_BENCH_RDK_H
#define HEADPOND_BENCH_RDK_H
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct rd_kafka_s rd_kafka_t;
typedef struct rd_kafka_conf_s rd_kafka_conf_t;
typedef struct rd_kafka_topic_s rd_kafka_topic_t;
typedef struct rd_kafka_topic_conf_s rd_kafka_topic_conf_t;
typedef struct rd_kafka_queue_s rd_kafka_queue_t;
typedef struct rd_kafka_mock_cluster_s rd_kafka_mock_cluster_t;

typedef struct rd_kafka_message_s {
  int err;
  rd_kafka_topic_t *rkt;
  int32_t partition;
  void *payload;
  size_t len;
  void *key;
  size_t key_len;
  int64_t offset;
  void *_private;
} rd_kafka_message_t;

enum { RD_KAFKA_PRODUCER = 0, RD_KAFKA_CONSUMER = 1 };
enum { RD_KAFKA_CONF_OK = 0 };
enum { RD_KAFKA_RESP_ERR__QUEUE_FULL = -184, RD_KAFKA_RESP_ERR__PARTITION_EOF = -191 };
enum { RD_KAFKA_OFFSET_BEGINNING = -2 };

typedef void rd_kafka_dr_msg_cb(rd_kafka_t *, const rd_kafka_message_t *, void *);
typedef void rd_kafka_consume_cb(rd_kafka_message_t *, void *);

rd_kafka_conf_t *rd_kafka_conf_new(void);
int rd_kafka_conf_set(rd_kafka_conf_t *, const char *name, const char *value, char *errstr, size_t errstr_size);
void rd_kafka_conf_set_dr_msg_cb(rd_kafka_conf_t *, rd_kafka_dr_msg_cb *);
rd_kafka_t *rd_kafka_new(int type, rd_kafka_conf_t *, char *errstr, size_t errstr_size);
void rd_kafka_destroy(rd_kafka_t *);
const char *rd_kafka_err2str(int err);
const char *rd_kafka_version_str(void);
rd_kafka_topic_t *rd_kafka_topic_new(rd_kafka_t *, const char *topic, rd_kafka_topic_conf_t *);
void rd_kafka_topic_destroy(rd_kafka_topic_t *);
int rd_kafka_poll(rd_kafka_t *, int timeout_ms);
int rd_kafka_flush(rd_kafka_t *, int timeout_ms);
int rd_kafka_outq_len(rd_kafka_t *);
int rd_kafka_produce_batch(rd_kafka_topic_t *, int32_t partition, int flags, rd_kafka_message_t *messages, int count);
typedef struct rd_kafka_error_s rd_kafka_error_t;
const char *rd_kafka_error_string(const rd_kafka_error_t *);
rd_kafka_error_t *rd_kafka_init_transactions(rd_kafka_t *, int timeout_ms);
rd_kafka_error_t *rd_kafka_begin_transaction(rd_kafka_t *);
rd_kafka_error_t *rd_kafka_commit_transaction(rd_kafka_t *, int timeout_ms);
rd_kafka_queue_t *rd_kafka_queue_new(rd_kafka_t *);
void rd_kafka_queue_destroy(rd_kafka_queue_t *);
int rd_kafka_consume_start_queue(rd_kafka_topic_t *, int32_t partition, int64_t offset, rd_kafka_queue_t *);
int rd_kafka_consume_stop(rd_kafka_topic_t *, int32_t partition);
int rd_kafka_consume_callback_queue(rd_kafka_queue_t *, int timeout_ms, rd_kafka_consume_cb *, void *opaque);

rd_kafka_mock_cluster_t *rd_kafka_mock_cluster_new(rd_kafka_t *, int broker_count);
void rd_kafka_mock_cluster_destroy(rd_kafka_mock_cluster_t *);
const char *rd_kafka_mock_cluster_bootstraps(const rd_kafka_mock_cluster_t *);
int rd_kafka_mock_topic_create(rd_kafka_mock_cluster_t *, const char *topic, int partitions, int replicas);
#endif
