/* loadgen: one-record Produce requests (or small Fetch requests) over raw sockets, one thread, epoll.
 *
 * A client library spends more CPU on a request than a broker does, so it cannot load one with single-record requests
 * without measuring itself. This program builds each request once per connection and partition and sends the same
 * bytes again and again; answers are checked for their error codes and correlation ids and timed into a histogram.
 *
 *   loadgen --port P --topic T [--partitions N] [--connections N] [--depth N] [--acks -1|0|1] [--record-bytes N]
 *           [--seconds S | --count N] [--interval-ms N] [--fetch-offset N --fetch-bytes N] [--idempotent 1]
 *           [--transaction-ms N]
 *
 *   --depth        requests in flight per connection; the next one is sent when an answer arrives
 *   --interval-ms  every connection sends one request, then waits this long: many light clients (depth 1)
 *   --fetch-offset fetch from this offset of partition 0 instead of producing
 *   --idempotent   every connection is a producer with an id of its own, and numbers its batches
 *   --transaction-ms  such a producer, which commits a transaction this often: nothing is in flight meanwhile
 *
 * Partitions: connection c starts at partition c mod N and walks on by one with every request.
 * With acks=0 nothing is answered, so only what the socket took is counted and there are no latencies.
 * Prints one JSON object. Exit 0 also when requests had errors (they are counted); 1 when it could not run.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 1024, ANSWER_BYTES_MAX = 4 << 20, ANSWER_CHUNK_BYTES = 256 << 10 };

/* ---- arguments ------------------------------------------------------------------------------------------------- */

static struct {
  int port, partitions, connections, depth, acks, record_bytes, interval_ms, fetch_bytes, idempotent, transaction_ms;
  long count;
  int64_t fetch_offset;
  double seconds;
  const char *topic;
} arg = {.partitions = 1, .connections = 1, .depth = 1, .acks = 1, .record_bytes = 100, .seconds = 5,
         .fetch_offset = -1, .fetch_bytes = 65536, .topic = "bench"};

static void die(const char *what) {
  fprintf(stderr, "loadgen: %s: %s\n", what, errno ? strerror(errno) : "");
  exit(1);
}

static void parse(int argc, char **argv) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const char *name = argv[i], *value = argv[i + 1];
    if (!strcmp(name, "--port")) arg.port = atoi(value);
    else if (!strcmp(name, "--topic")) arg.topic = value;
    else if (!strcmp(name, "--partitions")) arg.partitions = atoi(value);
    else if (!strcmp(name, "--connections")) arg.connections = atoi(value);
    else if (!strcmp(name, "--depth")) arg.depth = atoi(value);
    else if (!strcmp(name, "--acks")) arg.acks = atoi(value);
    else if (!strcmp(name, "--record-bytes")) arg.record_bytes = atoi(value);
    else if (!strcmp(name, "--seconds")) arg.seconds = atof(value);
    else if (!strcmp(name, "--count")) arg.count = atol(value);
    else if (!strcmp(name, "--interval-ms")) arg.interval_ms = atoi(value);
    else if (!strcmp(name, "--fetch-offset")) arg.fetch_offset = atoll(value);
    else if (!strcmp(name, "--fetch-bytes")) arg.fetch_bytes = atoi(value);
    else if (!strcmp(name, "--idempotent")) arg.idempotent = atoi(value);
    else if (!strcmp(name, "--transaction-ms")) arg.transaction_ms = atoi(value);
    else { errno = 0; die(name); }
  }
  if (arg.transaction_ms) arg.idempotent = 1;
  errno = EINVAL;
  if (argc % 2 == 0 || arg.port <= 0 || arg.partitions < 1 || arg.connections < 1 || arg.depth < 1 ||
      arg.depth > DEPTH_MAX || arg.record_bytes < 1 || arg.record_bytes > 900000 || strlen(arg.topic) > 249 ||
      (arg.interval_ms && arg.depth != 1) || arg.fetch_bytes + 4096 > ANSWER_BYTES_MAX ||
      (arg.idempotent && arg.acks != -1))
    die("arguments");
}

/* ---- bytes ------------------------------------------------------------------------------------------------------ */

typedef struct { uint8_t *at; } Out;

static void i8(Out *o, int v) { *o->at++ = (uint8_t)v; }
static void i16(Out *o, int v) { i8(o, v >> 8); i8(o, v); }
static void i32(Out *o, int64_t v) { i16(o, (int)(v >> 16)); i16(o, (int)v); }
static void i64(Out *o, int64_t v) { i32(o, v >> 32); i32(o, v); }
static void raw(Out *o, const void *p, size_t n) { memcpy(o->at, p, n); o->at += n; }
static void str(Out *o, const char *s) { i16(o, (int)strlen(s)); raw(o, s, strlen(s)); }
static void put32(uint8_t *at, uint32_t v) { Out o = {at}; i32(&o, v); }
static void zigzag(Out *o, int64_t v) {
  uint64_t u = ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
  for (; u > 127; u >>= 7) i8(o, (int)(u & 127) | 128);
  i8(o, (int)u);
}
static int zigzag_bytes(int64_t v) { uint8_t b[10]; Out o = {b}; zigzag(&o, v); return (int)(o.at - b); }
static uint32_t get32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static int get16(const uint8_t *p) { return (int16_t)(p[0] << 8 | p[1]); }

static uint32_t crc32c(const uint8_t *p, size_t n) {
  static uint32_t table[256];
  if (!table[1])
    for (uint32_t k = 0; k < 256; k++) {
      table[k] = k;
      for (int bit = 0; bit < 8; bit++) table[k] = table[k] >> 1 ^ (0x82F63B78u & -(table[k] & 1));
    }
  uint32_t crc = ~0u;
  while (n--) crc = crc >> 8 ^ table[(crc ^ *p++) & 255];
  return ~crc;
}

/* A RecordBatch v2 of one record without key. */
static void record_batch(Out *o, int64_t now_ms) {
  int value = arg.record_bytes, body = 1 + 1 + 1 + 1 + zigzag_bytes(value) + value + 1;
  uint8_t *batch = o->at;
  i64(o, 0);                                       /* base offset: the broker's to set */
  i32(o, 49 + zigzag_bytes(body) + body);          /* batch length after this field */
  i32(o, -1); i8(o, 2);                            /* leader epoch, magic */
  i32(o, 0);                                       /* CRC, below */
  i16(o, arg.transaction_ms ? 16 : 0);             /* attributes: transactional or nothing */
  i32(o, 0); i64(o, now_ms); i64(o, now_ms);
  int none = arg.idempotent ? 0 : -1;              /* 0: stamp() fills them in */
  i64(o, none); i16(o, none); i32(o, none);        /* producer id, epoch, sequence */
  i32(o, 1);                                       /* one record */
  zigzag(o, body); i8(o, 0); zigzag(o, 0); zigzag(o, 0); zigzag(o, -1); zigzag(o, value);
  for (int k = 0; k < value; k++) i8(o, 'a' + k % 26);
  zigzag(o, 0);
  put32(batch + 17, crc32c(batch + 21, (size_t)(o->at - batch - 21)));
}

/* Producer id, epoch and sequence lie in what the checksum covers, and differ from batch to batch. A CRC is linear:
 * what each of their bits changes in it is worked out once, so that a large batch is not summed again for every send. */
enum { STAMP_AT = 43, STAMP_BYTES = 14 };
static uint32_t stamp_base, stamp_change[STAMP_BYTES * 8];

static void prepare_stamps(uint8_t *batch, size_t bytes) {
  stamp_base = crc32c(batch + 21, bytes - 21);
  for (int bit = 0; bit < STAMP_BYTES * 8; bit++) {
    batch[STAMP_AT + bit / 8] ^= (uint8_t)(1 << bit % 8);
    stamp_change[bit] = crc32c(batch + 21, bytes - 21) ^ stamp_base;
    batch[STAMP_AT + bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
}

static void stamp(uint8_t *batch, int64_t producer_id, int epoch, uint32_t sequence) {
  Out o = {batch + STAMP_AT};
  i64(&o, producer_id); i16(&o, epoch); i32(&o, sequence);
  uint32_t crc = stamp_base;
  for (int bit = 0; bit < STAMP_BYTES * 8; bit++)
    if (batch[STAMP_AT + bit / 8] >> bit % 8 & 1) crc ^= stamp_change[bit];
  put32(batch + 17, crc);
}

static void request_header(Out *o, int api, int version) {
  i32(o, 0); i16(o, api); i16(o, version); i32(o, 0); str(o, "loadgen"); /* size and correlation id: later */
}

static const char *transactional_id = "loadgen";
static size_t batch_at; /* where the batch begins in a request */

static size_t produce_request(uint8_t *to, int partition, int64_t now_ms) { /* v7 */
  Out o = {to};
  request_header(&o, 0, 7);
  if (arg.transaction_ms) str(&o, transactional_id); else i16(&o, -1);
  i16(&o, arg.acks); i32(&o, 30000);
  i32(&o, 1); str(&o, arg.topic);
  i32(&o, 1); i32(&o, partition);
  uint8_t *size = o.at; i32(&o, 0);
  batch_at = (size_t)(o.at - to);
  record_batch(&o, now_ms);
  if (arg.idempotent && !stamp_base) prepare_stamps(to + batch_at, (size_t)(o.at - to) - batch_at);
  put32(size, (uint32_t)(o.at - size - 4));
  put32(to, (uint32_t)(o.at - to - 4));
  return (size_t)(o.at - to);
}

static size_t fetch_request(uint8_t *to) { /* v11, sessionless */
  Out o = {to};
  request_header(&o, 1, 11);
  i32(&o, -1); i32(&o, 500); i32(&o, 1); i32(&o, arg.fetch_bytes); i8(&o, 0); i32(&o, 0); i32(&o, -1);
  i32(&o, 1); str(&o, arg.topic);
  i32(&o, 1); i32(&o, 0); i32(&o, -1); i64(&o, arg.fetch_offset); i64(&o, -1); i32(&o, arg.fetch_bytes);
  i32(&o, 0); str(&o, "");
  put32(to, (uint32_t)(o.at - to - 4));
  return (size_t)(o.at - to);
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Log-linear histogram of nanoseconds: 64 steps per power of two, so at most 1.6 % off. */
static long histogram[64 * 64], samples;

static void record_latency(int64_t ns) {
  if (ns < 64) ns = 64;
  int power = 63 - __builtin_clzll((uint64_t)ns);
  histogram[(power - 6) * 64 + (int)(ns >> (power - 6) & 63)]++;
  samples++;
}

static double percentile_us(double q) {
  long want = (long)(q * (double)samples), seen = 0;
  for (int k = 0; k < 64 * 64; k++)
    if ((seen += histogram[k]) > want) return (double)((64LL + k % 64) << (k / 64)) / 1000.0;
  return 0;
}

/* ---- connections -------------------------------------------------------------------------------------------------- */

typedef struct {
  int fd, partition, first_in_flight, in_flight, want_write;
  uint32_t next_correlation, expected_correlation;
  int64_t sent_at[DEPTH_MAX], due_at;
  uint8_t *unsent;            /* the rest of a request that the socket did not take */
  size_t unsent_bytes, unsent_position;
  uint8_t *answer;            /* an answer that has not arrived completely */
  size_t answer_bytes, answer_capacity;
  int64_t producer_id, transaction_ends_at;
  int producer_epoch;
  uint32_t *sequences;        /* the next one of each partition */
} Connection;

static int poller;
static size_t *template_bytes;
static uint8_t **template;
static long requests, answers, errors, payload_bytes;
static int first_error;
static int64_t stop_sending_at;
static int answered; /* 0: acks=0, nothing comes back */

static void error_code(int code) {
  if (!code) return;
  errors++;
  if (!first_error) first_error = code;
}

static int want_more(int64_t now) { return arg.count ? requests < arg.count : now < stop_sending_at; }

static void watch(Connection *c, int want_write) {
  if (c->want_write == want_write) return;
  struct epoll_event e = {.events = EPOLLIN | (want_write ? EPOLLOUT : 0), .data.ptr = c};
  if (epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &e)) die("epoll_ctl");
  c->want_write = want_write;
}

/* Sends from the buffer of unsent bytes; 0 when the socket is full. */
static int send_rest(Connection *c) {
  while (c->unsent_position < c->unsent_bytes) {
    ssize_t n = send(c->fd, c->unsent + c->unsent_position, c->unsent_bytes - c->unsent_position, MSG_NOSIGNAL);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) { watch(c, 1); return 0; }
    if (n < 0) die("send");
    c->unsent_position += (size_t)n;
  }
  c->unsent_bytes = c->unsent_position = 0;
  watch(c, 0);
  return 1;
}

/* ---- producers with an id ------------------------------------------------------------------------------------------ */

/* One request and its answer while nothing is in flight; returns the answer behind its correlation id. */
static const uint8_t *ask(Connection *c, uint8_t *request, Out *end) {
  static uint8_t answer[65536];
  put32(request, (uint32_t)(end->at - request - 4));
  put32(request + 8, c->next_correlation++);
  c->expected_correlation++;
  fcntl(c->fd, F_SETFL, 0);
  size_t bytes = (size_t)(end->at - request), size;
  if (send(c->fd, request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) die("send");
  if (recv(c->fd, answer, 4, MSG_WAITALL) != 4 || (size = get32(answer)) > sizeof answer) die("recv");
  if (recv(c->fd, answer, size, MSG_WAITALL) != (ssize_t)size) die("recv");
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  return answer + 4;
}

static void get_producer_id(Connection *c) {
  uint8_t request[1024];
  int code = 0;
  for (int tries = 0; tries < 300; tries++) { /* a coordinator may have to be made first */
    if (arg.transaction_ms) { /* FindCoordinator v1 */
      Out o = {request};
      request_header(&o, 10, 1); str(&o, transactional_id); i8(&o, 1);
      ask(c, request, &o);
    }
    Out o = {request}; /* InitProducerId v1 */
    request_header(&o, 22, 1);
    if (arg.transaction_ms) str(&o, transactional_id); else i16(&o, -1);
    i32(&o, 60000);
    const uint8_t *answer = ask(c, request, &o);
    if (!(code = get16(answer + 4))) {
      c->producer_id = (int64_t)get32(answer + 6) << 32 | get32(answer + 10);
      c->producer_epoch = get16(answer + 14);
      return;
    }
    struct timespec pause = {.tv_nsec = 50000000};
    nanosleep(&pause, NULL);
  }
  fprintf(stderr, "loadgen: InitProducerId: error %d\n", code);
  exit(1);
}

static void end_transaction(Connection *c) { /* EndTxn v1, commit */
  uint8_t request[1024];
  Out o = {request};
  request_header(&o, 26, 1); str(&o, transactional_id); i64(&o, c->producer_id); i16(&o, c->producer_epoch); i8(&o, 1);
  error_code(get16(ask(c, request, &o) + 4));
}

static void next_transaction(Connection *c) {
  if (c->transaction_ends_at) end_transaction(c);
  uint8_t request[65536];
  for (;;) {
    Out o = {request}; /* AddPartitionsToTxn v1 */
    request_header(&o, 24, 1); str(&o, transactional_id); i64(&o, c->producer_id); i16(&o, c->producer_epoch);
    i32(&o, 1); str(&o, arg.topic); i32(&o, arg.partitions);
    for (int p = 0; p < arg.partitions; p++) i32(&o, p);
    int code = get16(ask(c, request, &o) + 4 + 4 + 2 + strlen(arg.topic) + 4 + 4);
    if (code != 51) { error_code(code); break; } /* CONCURRENT_TRANSACTIONS: the one before is being completed */
  }
  c->transaction_ends_at = now_ns() + arg.transaction_ms * 1000000LL;
}

/* Tops the connection up to its depth; all new requests leave in one send. */
static void fill(Connection *c, int64_t now, size_t buffer_bytes) {
  if (c->unsent_bytes) return;
  if (arg.transaction_ms && now >= c->transaction_ends_at && want_more(now)) {
    if (c->in_flight) return; /* the transaction ends when everything in it is answered */
    next_transaction(c);
    now = now_ns();
  }
  for (int burst = 0; c->in_flight < arg.depth && want_more(now) && burst < arg.depth; burst++) {
    size_t n = template_bytes[c->partition];
    if (c->unsent_bytes + n > buffer_bytes) break;
    uint8_t *at = c->unsent + c->unsent_bytes;
    memcpy(at, template[c->partition], n);
    put32(at + 8, c->next_correlation++);
    if (arg.idempotent) stamp(at + batch_at, c->producer_id, c->producer_epoch, c->sequences[c->partition]++);
    c->unsent_bytes += n;
    c->partition = (c->partition + 1) % arg.partitions;
    requests++;
    if (!answered) continue;
    c->sent_at[(c->first_in_flight + c->in_flight++) % arg.depth] = now;
  }
  c->due_at = now + arg.interval_ms * 1000000LL;
  send_rest(c);
}

static void check_answer(Connection *c, const uint8_t *p, size_t n, int64_t now) {
  errno = 0;
  if (c->in_flight == 0 || n < 8 || get32(p) != c->expected_correlation++) die("answer out of order");
  size_t code_at = 4 + 4 + 2 + strlen(arg.topic) + 4 + 4;
  if (arg.fetch_offset >= 0) {
    code_at += 4 + 2 + 4;                              /* throttle time is first; error and session id after it */
    if (n >= 10) error_code(get16(p + 8));
  }
  if (n >= code_at + 2) error_code(get16(p + code_at));
  else error_code(-1);
  payload_bytes += (long)n;
  record_latency(now - c->sent_at[c->first_in_flight]);
  c->first_in_flight = (c->first_in_flight + 1) % arg.depth;
  c->in_flight--;
  answers++;
}

static void receive(Connection *c) {
  static uint8_t chunk[ANSWER_CHUNK_BYTES];
  ssize_t n = recv(c->fd, chunk, sizeof chunk, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0) { if (n == 0) errno = ECONNRESET; die("recv"); }
  int64_t now = now_ns();
  const uint8_t *p = chunk;
  size_t left = (size_t)n;
  if (c->answer_bytes) {
    size_t need = c->answer_bytes + left;
    if (need > ANSWER_BYTES_MAX + ANSWER_CHUNK_BYTES) { errno = 0; die("answer too large"); }
    if (need > c->answer_capacity) c->answer = realloc(c->answer, c->answer_capacity = need * 2);
    memcpy(c->answer + c->answer_bytes, chunk, left);
    p = c->answer; left = need;
  }
  while (left >= 4 && left - 4 >= get32(p)) {
    size_t size = get32(p);
    check_answer(c, p + 4, size, now);
    p += 4 + size; left -= 4 + size;
  }
  if (left && left > c->answer_capacity) {
    uint8_t *grown = malloc(c->answer_capacity = left * 2 + 4096);
    memcpy(grown, p, left);
    free(c->answer);
    c->answer = grown;
  } else if (left) memmove(c->answer, p, left);
  c->answer_bytes = left;
}

static void open_connection(Connection *c, int index, size_t buffer_bytes) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)arg.port)};
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int one = 1;
  if ((c->fd = socket(AF_INET, SOCK_STREAM, 0)) < 0) die("socket");
  if (connect(c->fd, (struct sockaddr *)&to, sizeof to)) die("connect");
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  fcntl(c->fd, F_SETFL, O_NONBLOCK);
  c->partition = index % arg.partitions;
  c->unsent = malloc(buffer_bytes);
  c->sequences = calloc((size_t)arg.partitions, sizeof *c->sequences);
  if (arg.idempotent) get_producer_id(c);
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
  if (epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &e)) die("epoll_ctl");
}

/* ---- main --------------------------------------------------------------------------------------------------------- */

static volatile sig_atomic_t interrupted;
static void on_signal(int number) { (void)number; interrupted = 1; }

int main(int argc, char **argv) {
  parse(argc, argv);
  answered = arg.acks || arg.fetch_offset >= 0;
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  struct sigaction stop = {.sa_handler = on_signal};
  sigaction(SIGTERM, &stop, NULL);
  sigaction(SIGINT, &stop, NULL);

  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  int64_t now_ms = wall.tv_sec * 1000LL + wall.tv_nsec / 1000000;
  template = calloc((size_t)arg.partitions, sizeof *template);
  template_bytes = calloc((size_t)arg.partitions, sizeof *template_bytes);
  for (int p = 0; p < arg.partitions; p++) {
    template[p] = malloc((size_t)arg.record_bytes + 1024);
    template_bytes[p] = arg.fetch_offset >= 0 ? fetch_request(template[p]) : produce_request(template[p], p, now_ms);
  }
  size_t buffer_bytes = template_bytes[0] * (size_t)arg.depth;

  if ((poller = epoll_create1(0)) < 0) die("epoll_create1");
  Connection *connections = calloc((size_t)arg.connections, sizeof *connections);
  for (int k = 0; k < arg.connections; k++) open_connection(&connections[k], k, buffer_bytes);

  int64_t started = now_ns(), now = started;
  stop_sending_at = started + (int64_t)(arg.seconds * 1e9);
  int64_t give_up_at = stop_sending_at + 30000000000LL;
  for (int k = 0; k < arg.connections; k++) /* light clients are spread over their interval */
    connections[k].due_at = started + arg.interval_ms * 1000000LL * k / arg.connections;
  if (!arg.interval_ms)
    for (int k = 0; k < arg.connections; k++) fill(&connections[k], now_ns(), buffer_bytes);

  int64_t last_answer_at = started, next_scan_at = started;
  for (;;) {
    struct epoll_event events[256];
    int room = 0; /* with acks=0 we wait only while every socket is full */
    for (int k = 0; !answered && !room && k < arg.connections; k++) room = !connections[k].want_write;
    int n = epoll_wait(poller, events, 256, arg.interval_ms ? 1 : room ? 0 : 100);
    if (n < 0 && errno != EINTR) die("epoll_wait");
    for (int k = 0; k < n; k++) {
      Connection *c = events[k].data.ptr;
      if (events[k].events & (EPOLLIN | EPOLLERR | EPOLLHUP)) receive(c);
      now = now_ns();
      if (c->unsent_bytes && (events[k].events & EPOLLOUT)) send_rest(c);
      if (!arg.interval_ms) fill(c, now, buffer_bytes);
    }
    if (n > 0) last_answer_at = now;
    now = now_ns();
    if (interrupted) stop_sending_at = now;
    if (arg.interval_ms && now >= next_scan_at) {
      next_scan_at = now + 1000000;
      for (int k = 0; k < arg.connections; k++)
        if (!connections[k].in_flight && connections[k].due_at <= now) fill(&connections[k], now, buffer_bytes);
    } else if (!arg.interval_ms && !answered) {
      for (int k = 0; k < arg.connections; k++) fill(&connections[k], now, buffer_bytes);
    }
    if (!want_more(now) || interrupted) {
      int busy = 0;
      for (int k = 0; k < arg.connections; k++) busy |= connections[k].in_flight || connections[k].unsent_bytes;
      if (!busy || now > give_up_at || interrupted) break;
    }
  }
  for (int k = 0; k < arg.connections; k++)
    if (connections[k].transaction_ends_at && !connections[k].in_flight) end_transaction(&connections[k]);
  double seconds = (double)((answered && last_answer_at > started ? last_answer_at : now) - started) / 1e9;
  long done = answered ? answers : requests;
  printf("{\"requests\": %ld, \"unanswered\": %ld, \"seconds\": %.6f, \"requests_per_s\": %.1f, \"answer_bytes\": %ld, "
         "\"errors\": %ld, \"first_error\": %d, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
         done, answered ? requests - answers : 0, seconds, (double)done / seconds, payload_bytes, errors, first_error,
         percentile_us(0.50), percentile_us(0.99), percentile_us(0.999), percentile_us(1.0 - 1e-12));
  return 0;
}
