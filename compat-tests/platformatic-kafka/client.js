// @platformatic/kafka: how it does what the scenarios ask for.
'use strict'

const zlib = require('node:zlib')
const { unique, until } = require('scenario.js')

const textOf = bytes => bytes?.length ? bytes.toString() : null
const bytesOf = text => text === null || text === undefined ? undefined : Buffer.from(text)

// The errors of single topics, groups and partitions lie within errors of whole requests.
function codesOf (error) {
  const own = typeof error.apiCode === 'number' ? [error.apiCode] : []
  return [...own, ...(error.errors || []).flatMap(codesOf), ...(error.cause ? codesOf(error.cause) : [])]
}

exports.connect = async address => {
  const { Admin, Consumer, Producer } = await import(require.resolve('@platformatic/kafka'))
  const settings = { clientId: 'compat', bootstrapBrokers: [address], retries: 20 }
  const admin = new Admin({ ...settings, retries: 0 })
  admin.on('error', () => {})

  const metadata = async () => admin.metadata({ topics: await admin.listTopics(), forceUpdate: true })
  const listed = async (topic, timestamp) => {
    const [found] = await admin.listOffsets({ topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp: BigInt(timestamp) }] }] })
    return Number(found.partitions[0].offset)
  }
  const consumerOf = (groupId, more = {}) => {
    const consumer = new Consumer({ ...settings, groupId, autocommit: false, sessionTimeout: 10000, heartbeatInterval: 500, ...more })
    consumer.on('error', () => {})
    return consumer
  }
  const recordOf = message => ({
    key: textOf(message.key),
    value: textOf(message.value),
    headers: Object.fromEntries([...message.headers].map(([name, value]) => [name.toString(), value.toString()])),
    timeMs: Number(message.timestamp),
    offset: Number(message.offset)
  })
  const messageOf = (topic, record) => ({
    topic,
    partition: 0,
    key: bytesOf(record.key),
    value: bytesOf(record.value),
    headers: new Map(Object.entries(record.headers || {}).map(([name, value]) => [Buffer.from(name), Buffer.from(value)])),
    ...(record.timeMs ? { timestamp: BigInt(record.timeMs) } : {})
  })

  return {
    codecs: ['none', 'gzip', 'snappy', 'lz4', ...(zlib.zstdCompressSync ? ['zstd'] : [])], // from Node 22.15 on

    createTopic: (topic, partitions, replicas, wanted) => admin.createTopics({
      topics: [topic], partitions, replicas, configs: Object.entries(wanted).map(([name, value]) => ({ name, value }))
    }),
    growTopic: (name, count) => admin.createPartitions({ topics: [{ name, count, assignments: null }] }),
    deleteTopic: topic => admin.deleteTopics({ topics: [topic] }),
    topics: async () => Object.fromEntries([...(await metadata()).topics].map(([name, topic]) => [name, topic.partitionsCount])),
    brokers: async () => (await metadata()).brokers.size,
    deleteRecords: (name, before) => admin.deleteRecords({ topics: [{ name, partitions: [{ partition: 0, offset: BigInt(before) }] }] }),
    topicSetting: async (topic, name) => {
      const [found] = await admin.describeConfigs({ resources: [{ resourceType: 2, resourceName: topic, configurationKeys: [name] }] })
      return found.configs[0].value
    },
    alterTopicSetting: (topic, name, value) => admin.incrementalAlterConfigs({
      resources: [{ resourceType: 2, resourceName: topic, configs: [{ name, value, configOperation: 0 }] }]
    }),

    write: async (topic, records, { codec = 'none', acks = -1, idempotent = false }) => {
      const producer = new Producer({ ...settings, idempotent })
      await producer.send({ messages: records.map(record => messageOf(topic, record)), acks, compression: codec, idempotent })
      await producer.close()
    },
    read: async (topic, from, count, committed = false) => {
      const consumer = consumerOf(unique('reader'), { isolationLevel: committed ? 1 : 0 })
      const stream = await consumer.consume({ topics: [topic], mode: 'manual', offsets: [{ topic, partition: 0, offset: BigInt(from) }] })
      const records = []
      stream.on('data', message => records.push(recordOf(message)))
      await until(() => records.length >= count, `${count} records of ${topic}, ${records.length} came`)
      await consumer.close(true)
      return records
    },
    offsetAt: listed,
    ends: async topic => [await listed(topic, -2), await listed(topic, -1)],

    join: async (group, topic, instance) => {
      const consumer = consumerOf(group, instance ? { groupInstanceId: instance } : {})
      const records = []
      let assignments = 0
      consumer.on('consumer:group:join', () => assignments++)
      const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
      stream.on('data', message => records.push(recordOf(message)))
      return {
        owned: () => (consumer.assignments || []).flatMap(assignment => assignment.partitions).sort(),
        assignments: () => assignments,
        records,
        commit: (name, offset) => consumer.commit({ offsets: [{ topic: name, partition: 0, offset: BigInt(offset), leaderEpoch: -1 }] }),
        close: () => consumer.close(true)
      }
    },
    groups: async () => [...(await admin.listGroups()).keys()],
    groupState: async group => {
      const found = (await admin.describeGroups({ groups: [group] })).get(group)
      return [found.state[0] + found.state.slice(1).toLowerCase(), found.members.size]
    },
    deleteGroup: group => admin.deleteGroups({ groups: [group] }),
    committed: async (group, topic) => {
      const [found] = await admin.listConsumerGroupOffsets({ groups: [group], requireStable: true })
      return Number(found.topics.find(one => one.name === topic).partitions[0].committedOffset)
    },

    transactional: async transactionalId => {
      const producer = new Producer({ ...settings, idempotent: true, transactionalId })
      const consumers = []
      let transaction
      return {
        // by default it asks for the id 0, which Apache Kafka refuses from the second transaction of a name on
        begin: async () => { transaction = await producer.beginTransaction({ producerId: -1n, producerEpoch: -1 }) },
        send: (topic, value) => transaction.send({ messages: [messageOf(topic, { value })], acks: -1 }),
        sendOffset: async (group, topic, offset) => { // it takes the message before, as its own consumer read it
          const consumer = consumerOf(group)
          consumers.push(consumer)
          const stream = await consumer.consume({ topics: [topic], mode: 'earliest' })
          const messages = []
          stream.on('data', message => messages.push(message))
          await until(() => messages.some(message => Number(message.offset) === offset - 1), 'the message before the offset')
          await transaction.addConsumer(consumer)
          await transaction.addOffset(messages.find(message => Number(message.offset) === offset - 1))
        },
        commit: async () => { await transaction.commit(); await Promise.all(consumers.splice(0).map(consumer => consumer.close(true))) },
        abort: async () => { await transaction.abort(); await Promise.all(consumers.splice(0).map(consumer => consumer.close(true))) },
        close: () => producer.close(true)
      }
    },
    code: error => {
      const [code] = codesOf(error)
      if (code === undefined) throw error
      return code
    },
    fenced: error => codesOf(error).some(code => code === 47 || code === 90),
    end: () => admin.close()
  }
}

exports.lacks = {
  a_static_member_comes_back_to_its_partitions: 'a member with an instance id leaves its group when it is closed'
}
