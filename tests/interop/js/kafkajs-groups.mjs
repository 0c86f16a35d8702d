// Groups and transactions with kafkajs, which knows the classic protocol with eager rebalances. The same checks as in
// java/Groups.java and java/Transactions.java.
//
//   kafkajs-groups.mjs BOOTSTRAP PREFIX      (topics, groups and transactional ids are named PREFIX-...)
import kafkajs from 'kafkajs'

const { Kafka, Partitioners, logLevel } = kafkajs
const [bootstrap, prefix] = process.argv.slice(2)
const PARTITIONS = 4
const kafka = new Kafka({ clientId: 'interop', brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { retries: 5 } })
const admin = kafka.admin()
await admin.connect()

const topic = await create('eager', PARTITIONS)
await rebalance()
await commits()
for (const protocol of ['cooperative', 'consumer']) {
  for (const check of ['rebalance', 'commits']) say(`${check}-${protocol}`, { left_out: 'it knows eager rebalances only' })
}
await visible()
await exactlyOnce()
await fenced()
await admin.disconnect()

async function rebalance () {
  const first = await join()
  await until('all partitions', () => first.held.length === PARTITIONS)
  const second = await join()
  await until('both to have two', () => first.held.length === 2 && second.held.length === 2)
  const apart = first.held.every(partition => !second.held.includes(partition))
  await second.consumer.disconnect()
  await until('all partitions again', () => first.held.length === PARTITIONS)
  await first.consumer.disconnect()
  // With each rebalance it lets go of everything, and does not say so.
  say('rebalance-eager', { shared: true, apart, revoked: 4 })
}

async function join () {
  const consumer = kafka.consumer({ groupId: `${topic}-rebalance`, heartbeatInterval: 300 })
  const member = { consumer, held: [] }
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => { member.held = payload.memberAssignment[topic] ?? [] })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic] })
  await consumer.run({ eachMessage: async () => {} })
  return member
}

async function commits () {
  const sending = await producer({})
  await sending.send({ topic, messages: Array.from({ length: 40 }, (_, n) => ({ partition: n % PARTITIONS, value: String(n) })) })
  await sending.disconnect()
  const groupId = `${topic}-commits`
  const found = []
  let lives = 0
  for (; found.length < 40 && lives < 10; lives++) { // each life reads a little, and commits what it has read
    const wanted = Math.min(40, found.length + 8)
    const consumer = kafka.consumer({ groupId, heartbeatInterval: 300 })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    let failed
    const enough = new Promise(resolve => consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => {
        if (found.length >= wanted || failed) return
        found.push(message.value.toString())
        try {
          await consumer.commitOffsets([{ topic, partition, offset: String(Number(message.offset) + 1) }])
        } catch (error) {
          failed = error
        }
        if (found.length >= wanted || failed) resolve()
      }
    }))
    await enough
    if (failed) throw failed
    await consumer.disconnect()
  }
  const [offsets] = await admin.fetchOffsets({ groupId, topics: [topic] })
  const committed = offsets.partitions.reduce((sum, { offset }) => sum + Number(offset), 0)
  say('commits-eager', { count: found.length, once: new Set(found).size === found.length, lives: lives > 2, committed })
}

async function visible () {
  const left = await create('visible-left', 1)
  const right = await create('visible-right', 1)
  const sending = await producer({ transactionalId: `${prefix}-visible`, maxInFlightRequests: 1, idempotent: true })
  for (let n = 0; n < 6; n++) {
    const transaction = await sending.transaction()
    const messages = [{ value: `${n % 2 === 0 ? 'kept' : 'aborted'}-${n}` }]
    for (const each of [left, right]) await transaction.send({ topic: each, messages })
    await (n % 2 === 0 ? transaction.commit() : transaction.abort())
  }
  await sending.disconnect()
  say('visible', { left: await values(left, 3), right: await values(right, 3), uncommitted: await values(left, 6, true) })
}

// Reads a topic in a group and writes it to another, the offsets in the transaction; every other attempt is aborted.
async function exactlyOnce () {
  const from = await create('from', 1)
  const to = await create('to', 1)
  const groupId = `${prefix}-group`
  const plain = await producer({})
  await plain.send({ topic: from, messages: Array.from({ length: 30 }, (_, n) => ({ value: String(n) })) })
  await plain.disconnect()
  const sending = await producer({ transactionalId: `${prefix}-exactly-once`, maxInFlightRequests: 1, idempotent: true })
  let attempts = 0
  let changed = ''
  for (let next = 0; next < 30 && attempts < 20; attempts++) {
    const transaction = await sending.transaction()
    const end = Math.min(30, next + 9)
    await transaction.send({ topic: to, messages: Array.from({ length: end - next }, (_, n) => ({ value: `${next + n}!` })) })
    await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic: from, partitions: [{ partition: 0, offset: String(end) }] }] })
    if (attempts % 2 === 0) await transaction.abort()
    else {
      await transaction.commit()
      next = end
    }
    let seen
    const wanted = next === 0 ? -1 : next
    await until(`offset ${wanted}`, async () => { // markers come later
      const [offsets] = await admin.fetchOffsets({ groupId, topics: [from] })
      seen = Number(offsets.partitions[0].offset)
      if (seen > wanted) changed = 'changed'
      return seen === wanted
    })
  }
  await sending.disconnect()
  say('exactly-once', { values: await values(to, 30), after_abort: changed, several: attempts > 3 })
}

async function fenced () {
  const topic = await create('fenced', 1)
  const options = { transactionalId: `${prefix}-fenced`, maxInFlightRequests: 1, idempotent: true, retry: { retries: 2 } }
  const first = await producer(options)
  const begun = await first.transaction()
  await begun.send({ topic, messages: [{ value: 'of the first' }] })
  const second = await producer({ ...options, retry: { retries: 10 } })
  const other = await second.transaction() // which aborts what the first has begun
  await other.send({ topic, messages: [{ value: 'of the second' }] })
  await other.commit()
  let failed = 'none'
  try {
    await begun.send({ topic, messages: [{ value: 'too late' }] })
    await begun.commit()
  } catch (error) {
    const type = (error.cause ?? error).type
    failed = ['INVALID_PRODUCER_EPOCH', 'PRODUCER_FENCED'].includes(type) ? 'Fenced' : String(error)
  }
  await second.disconnect()
  await first.disconnect()
  say('fenced', { failed, values: await values(topic, 1) })
}

// What a consumer finds before it comes to a record that a plain producer writes behind it.
async function values (topic, count, readUncommitted = false) {
  const plain = await producer({})
  await plain.send({ topic, messages: [{ value: 'the end' }] })
  await plain.disconnect()
  const consumer = kafka.consumer({ groupId: `${topic}-${Math.random()}`, readUncommitted })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  const found = []
  await new Promise(resolve => consumer.run({
    eachMessage: async ({ message }) => {
      found.push(message.value.toString())
      if (found.length > count) resolve()
    }
  }))
  await consumer.disconnect()
  return found.filter(value => value !== 'the end')
}

async function producer (options) {
  const opened = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner, ...options })
  await opened.connect()
  return opened
}

async function create (name, numPartitions) {
  const topic = `${prefix}-${name}`
  await admin.createTopics({ topics: [{ topic, numPartitions }] })
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
