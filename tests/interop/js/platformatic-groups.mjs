// Groups and transactions with @platformatic/kafka, which knows the classic protocol with eager rebalances and the new
// consumer protocol. The same checks as in java/Groups.java and java/Transactions.java; but its consumer does not leave
// out what was aborted, whatever the broker says, so that the Python test reads what it wrote.
//
//   platformatic-groups.mjs BOOTSTRAP PREFIX      (topics, groups and transactional ids are named PREFIX-...)
import { Admin, Consumer, Producer } from '@platformatic/kafka'

const [bootstrap, prefix] = process.argv.slice(2)
const PARTITIONS = 4
const PROTOCOLS = { eager: { groupProtocol: 'classic', heartbeatInterval: 300 }, consumer: { groupProtocol: 'consumer' } }
const base = { clientId: 'interop', bootstrapBrokers: [bootstrap], retries: 5 }
const admin = new Admin(base)

for (const protocol of Object.keys(PROTOCOLS)) {
  const topic = await create(protocol, PARTITIONS)
  await rebalance(topic, protocol)
  await commits(topic, protocol)
}
for (const check of ['rebalance', 'commits']) say(`${check}-cooperative`, { left_out: 'it knows eager rebalances only' })
await visible()
await exactlyOnce()
say('fenced', { left_out: 'it is refused where another one has left a transaction open (PRODUCER_FENCED), by a real Kafka too' })
await admin.close()
process.exit(0) // something of a closed consumer would keep it alive, with a real Kafka too

async function rebalance (topic, protocol) {
  const first = await join(topic, protocol)
  await until('all partitions', () => held(first, topic).length === PARTITIONS)
  const second = await join(topic, protocol)
  await until('both to have two', () => held(first, topic).length === 2 && held(second, topic).length === 2)
  const apart = held(first, topic).every(partition => !held(second, topic).includes(partition))
  const listed = await admin.listGroups({ types: ['classic', 'consumer'] })
  await second.close(true)
  await until('all partitions again', () => held(first, topic).length === PARTITIONS)
  await first.close(true)
  // It does not say what it lets go of.
  say(`rebalance-${protocol}`, { shared: true, apart, revoked: protocol === 'eager' ? 4 : 2, type: listed.get(`${topic}-rebalance`).groupType })
}

async function join (topic, protocol) {
  const consumer = new Consumer({ ...base, ...PROTOCOLS[protocol], groupId: `${topic}-rebalance` })
  const stream = await consumer.consume({ topics: [topic], mode: 'latest' })
  stream.resume()
  return consumer
}

function held (consumer, topic) {
  return consumer.assignments?.find(each => each.topic === topic)?.partitions ?? []
}

async function commits (topic, protocol) {
  const messages = Array.from({ length: 40 }, (_, n) => ({ topic, partition: n % PARTITIONS, value: Buffer.from(String(n)) }))
  await produce(messages)
  const groupId = `${topic}-commits`
  const found = []
  let lives = 0
  for (; found.length < 40 && lives < 10; lives++) { // each life reads a little, and commits what it has read
    const wanted = Math.min(40, found.length + 8)
    const consumer = new Consumer({ ...base, ...PROTOCOLS[protocol], groupId, autocommit: false, maxWaitTime: 500 })
    const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
    for await (const message of stream) {
      found.push(message.value.toString())
      await message.commit()
      if (found.length >= wanted) break
    }
    await consumer.close(true)
  }
  const reader = new Consumer({ ...base, groupId })
  const offsets = await reader.listCommittedOffsets({ topics: [{ topic, partitions: [0, 1, 2, 3] }] })
  await reader.close(true)
  const committed = offsets.get(topic).reduce((sum, offset) => sum + Number(offset), 0)
  say(`commits-${protocol}`, { count: found.length, once: new Set(found).size === found.length, lives: lives > 2, committed })
}

async function visible () {
  const left = await create('visible-left', 1)
  const right = await create('visible-right', 1)
  const producer = transactional('visible')
  for (let n = 0; n < 6; n++) {
    const transaction = await producer.beginTransaction()
    const value = Buffer.from(`${n % 2 === 0 ? 'kept' : 'aborted'}-${n}`)
    await transaction.send({ messages: [left, right].map(topic => ({ topic, partition: 0, value })) })
    await (n % 2 === 0 ? transaction.commit() : transaction.abort())
  }
  await producer.close()
  say('visible', { topics: { left, right, uncommitted: left } })
}

// Reads a topic in a group and writes it to another, the offsets in the transaction; every other attempt is aborted.
async function exactlyOnce () {
  const from = await create('from', 1)
  const to = await create('to', 1)
  const groupId = `${prefix}-group`
  await produce(Array.from({ length: 30 }, (_, n) => ({ topic: from, partition: 0, value: Buffer.from(String(n)) })))
  const producer = transactional('exactly-once')
  let attempts = 0
  let changed = ''
  for (let next = 0; next < 30 && attempts < 20; attempts++) {
    const consumer = new Consumer({ ...base, groupId, autocommit: false, maxWaitTime: 500 })
    const stream = await consumer.consume({ topics: [from], mode: 'committed', fallbackMode: 'earliest' })
    const transaction = await producer.beginTransaction()
    await transaction.addConsumer(consumer)
    let read = 0
    for await (const message of stream) {
      await transaction.send({ messages: [{ topic: to, partition: 0, value: Buffer.from(`${message.value}!`) }] })
      await transaction.addOffset(message)
      if (++read === 9 || next + read === 30) break
    }
    await (attempts % 2 === 0 ? transaction.abort() : transaction.commit())
    if (attempts % 2 === 1) next += read
    const wanted = next === 0 ? -1 : next
    await until(`offset ${wanted}`, async () => { // markers come later
      const offsets = await consumer.listCommittedOffsets({ topics: [{ topic: from, partitions: [0] }] })
      const seen = Number(offsets.get(from)[0])
      if (seen > wanted) changed = `changed to ${seen} not ${wanted}`
      return seen === wanted
    })
    await consumer.close(true)
  }
  await producer.close()
  say('exactly-once', { topics: { values: to }, after_abort: changed, several: attempts > 3 })
}

function transactional (name) {
  return new Producer({ ...base, retries: 20, retryDelay: 100, idempotent: true, transactionalId: `${prefix}-${name}` })
}

async function produce (messages) {
  const producer = new Producer(base)
  await producer.send({ messages })
  await producer.close()
}

async function create (name, partitions) {
  const topic = `${prefix}-${name}`
  await admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  return topic
}

async function until (what, condition) {
  for (const end = Date.now() + 60_000; !(await condition());) {
    if (Date.now() > end) throw new Error(`waited for ${what}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

function say (check, fields) {
  console.log(JSON.stringify({ check, ...fields }))
}
