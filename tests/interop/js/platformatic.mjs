// Round trips with @platformatic/kafka: what every program in this folder's neighbours does, in the same words. Prints
// one JSON line per check; the Python test says what is right. Reading goes through the client's plain fetch, which
// needs no group.
//
//   platformatic.mjs BOOTSTRAP PREFIX      (topics are named PREFIX-...)
import { randomBytes } from 'node:crypto'
import { Admin, Consumer, Producer, compressionsAlgorithms, ConfigResourceTypes, IncrementalAlterConfigOperationTypes } from '@platformatic/kafka'

const [bootstrap, prefix] = process.argv.slice(2)
const FIRST_MS = 1_700_000_000_000n
const base = { clientId: 'interop', bootstrapBrokers: [bootstrap], retries: 3 }
const admin = new Admin(base)
const consumer = new Consumer({ ...base, groupId: 'none', maxWaitTime: 1000 })

for (const name of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) await codec(name)
for (const [name, acks] of [['0', 0], ['1', 1], ['all', -1]]) await acksOf(name, acks)
await partitions()
await seek()
await ordered()
await large()
await waiting()
await adminRoundTrip()
await consumer.close(true)
await admin.close()

async function codec (name) {
  if (compressionsAlgorithms[name].available === false) {
    say(`codec-${name}`, { left_out: `this Node.js (${process.version}) has no ${name}` })
    return
  }
  const topic = await create(`codec-${name}`, 1)
  await produce(samples(topic), { compression: name })
  say(`codec-${name}`, { records: (await read(topic, 4)).map(shown) })
}

function samples (topic) {
  const at = n => FIRST_MS + BigInt(1000 * n)
  return [
    { topic, partition: 0, timestamp: at(0), key: Buffer.from('k0'), value: Buffer.from('v0'), headers: new Map([[Buffer.from('a'), Buffer.from([1])], [Buffer.from('b'), Buffer.alloc(0)]]) },
    { topic, partition: 0, timestamp: at(1), key: Buffer.from('k1'), value: null },
    { topic, partition: 0, timestamp: at(2), value: Buffer.from('v2') },
    { topic, partition: 0, timestamp: at(3), key: Buffer.from('k3'), value: Buffer.alloc(10_000, 'z') }
  ]
}

async function acksOf (name, acks) {
  const topic = await create(`acks-${name}`, 1)
  await produce(numbered(topic, 10), { acks })
  say(`acks-${name}`, { count: (await read(topic, 10)).length })
}

async function partitions () {
  const topic = await create('partitions', 6)
  const found = []
  const producer = new Producer(base)
  for (let n = 0; n < 20; n++) {
    const sent = await producer.send({ messages: [{ topic, key: Buffer.from(`key-${n}`), value: Buffer.alloc(0) }] })
    found.push(sent.offsets[0].partition)
  }
  await producer.close()
  say('partitions', { of_keys: found })
}

async function seek () {
  const topic = `${prefix}-codec-none`
  const [first] = await read(topic, 2, 2n)
  const listed = async timestamp => {
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }] })
    return Number(found.partitions[0].offset)
  }
  const beyond = await listed(FIRST_MS + 10_000n)
  say('seek', { first: first.offset, by_timestamp: await listed(FIRST_MS + 1500n), beyond: beyond < 0 ? null : beyond, start: await listed(-2n), end: await listed(-1n) })
}

async function ordered () {
  const topic = await create('ordered', 1)
  const producer = new Producer({ ...base, idempotent: true, acks: -1 })
  const all = numbered(topic, 2000)
  for (let at = 0; at < all.length; at += 100) await producer.send({ messages: all.slice(at, at + 100) })
  await producer.close()
  const found = await read(topic, 2000)
  const inOrder = found.every((record, n) => record.value.toString() === String(n) && record.offset === n)
  say('ordered', { count: found.length, ordered: inOrder })
}

async function large () {
  const topic = await create('large', 1, { 'max.message.bytes': '10000000' })
  const value = randomBytes(5_000_000)
  await produce([{ topic, partition: 0, value }])
  let refused = 'none'
  try {
    await produce([{ topic, partition: 0, value: Buffer.alloc(11_000_000) }], {}, 0)
  } catch (error) {
    refused = error.findBy?.('apiId', 'MESSAGE_TOO_LARGE') ? 'RecordTooLarge' : String(error)
  }
  const [found] = await read(topic, 1)
  say('large', { bytes: found.value.length, same: found.value.equals(value), refused })
}

async function waiting () {
  const topic = await create('waiting', 1)
  const late = new Consumer({ ...base, groupId: 'none', maxWaitTime: 20_000, timeout: 60_000 })
  const answer = fetchOnce(late, topic, 0n)
  await produce([{ topic, partition: 0, value: Buffer.from('late') }])
  say('waiting', { got: (await answer)[0].value.toString() })
  await late.close(true)
}

async function adminRoundTrip () {
  const topic = await create('admin', 3, { 'retention.ms': '12345000' })
  const resource = { resourceType: ConfigResourceTypes.TOPIC, resourceName: topic }
  const retention = async () => {
    const [found] = await admin.describeConfigs({ resources: [{ ...resource, configurationKeys: ['retention.ms'] }] })
    return found.configs[0].value
  }
  const before = await retention()
  const configOperation = IncrementalAlterConfigOperationTypes.SET
  await admin.incrementalAlterConfigs({ resources: [{ ...resource, configs: [{ name: 'retention.ms', configOperation, value: '54321000' }] }] })
  const after = await retention()
  await admin.createPartitions({ topics: [{ name: topic, count: 5, assignments: null }] })
  const metadata = await admin.metadata({ topics: [topic], forceUpdate: true })
  const listed = (await admin.listTopics()).includes(topic)
  let again = 'none'
  try {
    await admin.createTopics({ topics: [topic], partitions: 1, replicas: 1 })
  } catch (error) {
    again = error.findBy?.('apiId', 'TOPIC_ALREADY_EXISTS') ? 'TopicExists' : String(error)
  }
  await admin.deleteTopics({ topics: [topic] })
  const gone = !(await admin.listTopics()).includes(topic)
  say('admin', { before, after, partitions: metadata.topics.get(topic).partitions.length, listed, brokers: metadata.brokers.size, again, gone })
}

async function create (name, partitions, more = {}) {
  const topic = `${prefix}-${name}`
  const configs = Object.entries({ 'retention.ms': '-1', ...more }).map(([name, value]) => ({ name, value }))
  await admin.createTopics({ topics: [topic], partitions, replicas: 1, configs })
  return topic
}

function numbered (topic, count) {
  return Array.from({ length: count }, (_, n) => ({ topic, partition: 0, value: Buffer.from(String(n)) }))
}

async function produce (messages, options = {}, retries = 3) {
  const producer = new Producer({ ...base, retries })
  try {
    await producer.send({ messages, ...options })
  } finally {
    await producer.close()
  }
}

async function read (topic, count, from = 0n) {
  const found = []
  for (let tries = 0; found.length < count && tries < 60; tries++) {
    const more = await fetchOnce(consumer, topic, from)
    found.push(...more)
    if (more.length) from = BigInt(more.at(-1).offset + 1)
  }
  return found
}

async function fetchOnce (consumer, topic, from) {
  const metadata = await consumer.metadata({ topics: [topic] })
  const described = metadata.topics.get(topic)
  const partition = { partition: 0, currentLeaderEpoch: -1, fetchOffset: from, lastFetchedEpoch: -1, partitionMaxBytes: 1 << 24 }
  const answer = await consumer.fetch({ node: described.partitions[0].leader, topics: [{ topicId: described.id, partitions: [partition] }] })
  const batches = answer.responses.flatMap(each => each.partitions).flatMap(each => each.records ?? [])
  return batches
    .flatMap(batch => batch.records.map(record => ({
      ...record,
      offset: Number(batch.firstOffset) + record.offsetDelta,
      timestamp: Number(batch.firstTimestamp + record.timestampDelta)
    })))
    .filter(record => record.offset >= Number(from))
}

function shown ({ offset, timestamp, key, value, headers }) {
  return { offset, timestamp, key: inHex(key), value: inHex(value), headers: [...headers].map(([name, content]) => [name.toString(), inHex(content)]) }
}

function inHex (data) {
  return data == null ? null : data.toString('hex')
}

function say (check, fields) {
  console.log(JSON.stringify({ check, ...fields }))
}
