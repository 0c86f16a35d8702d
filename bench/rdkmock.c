/* rdkmock: librdkafka's in-memory mock broker as a process of its own. It stores nothing on disk and keeps the last few MB
 * of a partition only: the ceiling that a broker in C without any duty could reach.
 *
 * Prints its address, then obeys lines on stdin: "topic NAME PARTITIONS" creates a topic and answers "ok". Ends when stdin does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "rdk.h"

int main(void) {
  char why[512], line[512], name[256];
  int partitions;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  rd_kafka_conf_set(conf, "log_level", "0", why, sizeof why);
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
  if (!rk) { fprintf(stderr, "rdkmock: %s\n", why); return 1; }
  rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
  if (!cluster) { fprintf(stderr, "rdkmock: no cluster\n"); return 1; }
  printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster));
  fflush(stdout);
  while (fgets(line, sizeof line, stdin)) {
    int err = sscanf(line, "topic %255s %d", name, &partitions) == 2 ? rd_kafka_mock_topic_create(cluster, name, partitions, 1) : 1;
    printf("%s\n", err ? "failed" : "ok");
    fflush(stdout);
  }
  rd_kafka_mock_cluster_destroy(cluster);
  rd_kafka_destroy(rk);
  return 0;
}
