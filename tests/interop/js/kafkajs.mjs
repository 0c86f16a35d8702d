// kafkajs produces and administers; it can't consume without a group. Prints one JSON line per check; the Python test
// says what is right, and reads what was produced.
//
//   kafkajs.mjs BOOTSTRAP PREFIX      (topics are named PREFIX-...)
import { randomBytes } from 'node:crypto'
import kafkajs from 'kafkajs'

const { Kafka, CompressionTypes, Partitioners, logLevel, ConfigResourceTypes } = kafkajs
const [bootstrap, prefix] = process.argv.slice(2)
const FIRST_MS = 1_700_000_000_000
const kafka = new Kafka({ clientId: 'interop', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 3 } })
const admin = kafka.admin()
await admin.connect()

for (const [name, compression] of [['none', CompressionTypes.None], ['gzip', CompressionTypes.GZIP]]) {
  const topic = await create(`codec-${name}`, 1)
  await produce(topic, samples(), { compression })
  say(`codec-${name}`, { topic })
}
for (const name of ['snappy', 'lz4', 'zstd']) say(`codec-${name}`, { left_out: 'it needs another package for it' })
say('waiting', { left_out: 'it consumes in groups only' })
for (const [name, acks] of [['0', 0], ['1', 1], ['all', -1]]) {
  const topic = await create(`acks-${name}`, 1)
  await produce(topic, numbered(10), { acks })
  // Nothing says when acks=0 has arrived.
  let count = 0
  for (let tries = 0; count < 10 && tries < 600; tries++) count = Number((await admin.fetchTopicOffsets(topic))[0].high)
  say(`acks-${name}`, { count })
}
await partitions()
await seek()
await ordered()
await large()
await adminRoundTrip()
await admin.disconnect()

function samples () {
  const at = n => String(FIRST_MS + 1000 * n)
  return [
    { timestamp: at(0), key: 'k0', value: 'v0', headers: { a: Buffer.from([1]), b: '' } },
    { timestamp: at(1), key: 'k1', value: null },
    { timestamp: at(2), key: null, value: 'v2' },
    { timestamp: at(3), key: 'k3', value: 'z'.repeat(10_000) }
  ]
}

async function partitions () {
  const topic = await create('partitions', 6)
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  const found = []
  for (let n = 0; n < 20; n++) {
    const [sent] = await producer.send({ topic, messages: [{ key: `key-${n}`, value: '' }] })
    found.push(sent.partition)
  }
  await producer.disconnect()
  say('partitions', { of_keys: found })
}

async function seek () {
  const topic = `${prefix}-codec-none`
  const [{ low, high }] = await admin.fetchTopicOffsets(topic)
  const [at] = await admin.fetchTopicOffsetsByTimestamp(topic, FIRST_MS + 1500)
  const [beyond] = await admin.fetchTopicOffsetsByTimestamp(topic, FIRST_MS + 10_000)
  // Without a record at or after the time, kafkajs answers with the end of the log.
  say('seek', { by_timestamp: Number(at.offset), beyond: beyond.offset === high ? null : Number(beyond.offset), start: Number(low), end: Number(high) })
}

async function ordered () {
  const topic = await create('ordered', 1)
  const producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1, createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  for (let at = 0; at < 2000; at += 100) await producer.send({ topic, messages: numbered(2000).slice(at, at + 100) })
  await producer.disconnect()
  say('ordered', { topic })
}

async function large () {
  const topic = await create('large', 1, { 'max.message.bytes': '10000000' })
  const value = randomBytes(5_000_000)
  await produce(topic, [{ value }])
  let refused = 'none'
  try {
    await produce(topic, [{ value: Buffer.alloc(11_000_000) }])
  } catch (error) {
    refused = (error.cause ?? error).type === 'MESSAGE_TOO_LARGE' ? 'RecordTooLarge' : String(error)
  }
  say('large', { topic, bytes: value.length, refused })
}

async function adminRoundTrip () {
  const topic = await create('admin', 3, { 'retention.ms': '12345000' })
  const resource = { type: ConfigResourceTypes.TOPIC, name: topic }
  const retention = async () => {
    const found = await admin.describeConfigs({ resources: [{ ...resource, configNames: ['retention.ms'] }], includeSynonyms: false })
    return found.resources[0].configEntries[0].configValue
  }
  const before = await retention()
  await admin.alterConfigs({ resources: [{ ...resource, configEntries: [{ name: 'retention.ms', value: '54321000' }] }], validateOnly: false })
  const after = await retention()
  await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  const listed = (await admin.listTopics()).includes(topic)
  const { brokers } = await admin.describeCluster()
  // kafkajs says false where others raise an error.
  const again = (await admin.createTopics({ topics: [{ topic }] })) ? 'none' : 'TopicExists'
  await admin.deleteTopics({ topics: [topic] })
  const gone = !(await admin.listTopics()).includes(topic)
  say('admin', { before, after, partitions: topics[0].partitions.length, listed, brokers: brokers.length, again, gone })
}

async function create (name, numPartitions, more = {}) {
  const topic = `${prefix}-${name}`
  const configEntries = Object.entries({ 'retention.ms': '-1', ...more }).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }] })
  return topic
}

function numbered (count) {
  return Array.from({ length: count }, (_, n) => ({ value: String(n) }))
}

async function produce (topic, messages, options = {}) {
  const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  try {
    await producer.send({ topic, messages, ...options })
  } finally {
    await producer.disconnect()
  }
}

function say (check, fields) {
  console.log(JSON.stringify({ check, ...fields }))
}
