// @confluentinc/kafka-javascript: how it does what the scenarios ask for, by its promises as far as they go.
'use strict'

const { unique, until } = require('scenario.js')
const { AdminClient, KafkaJS, Producer, features } = require('@confluentinc/kafka-javascript')

const ASSIGNED = -175 // what its callback of rebalances is given
const FENCED = [-144, 47, 90, -152] // the last: what is not sent yet when the producer learns of it

const textOf = bytes => bytes ? bytes.toString() : null

exports.connect = async address => {
  const kafka = new KafkaJS.Kafka({ kafkaJS: { brokers: [address], clientId: 'compat', logLevel: KafkaJS.logLevel.NOTHING } })
  const admin = kafka.admin()
  await admin.connect()

  const recordOf = message => ({
    key: textOf(message.key),
    value: textOf(message.value),
    headers: Object.fromEntries(Object.entries(message.headers || {}).map(([name, value]) => [name, value.toString()])),
    timeMs: Number(message.timestamp),
    offset: Number(message.offset)
  })
  const withProducer = async (kafkaJS, act) => {
    const producer = kafka.producer({ kafkaJS })
    await producer.connect()
    try {
      return await act(producer)
    } finally {
      await producer.disconnect()
    }
  }
  const subscribe = async (topic, from, settings, more = {}) => {
    const consumer = kafka.consumer({ kafkaJS: { fromBeginning: true, autoCommit: false, ...settings }, ...more })
    const records = []
    await consumer.connect()
    await consumer.subscribe({ topics: [topic] })
    await consumer.run({ eachMessage: async ({ message }) => { records.push(recordOf(message)) } })
    if (from) consumer.seek({ topic, partition: 0, offset: String(from) })
    return { consumer, records }
  }

  return {
    codecs: ['none', 'gzip', 'snappy', 'lz4', ...(features.includes('zstd') ? ['zstd'] : [])], // where its header was found

    createTopic: async (topic, numPartitions, replicationFactor, wanted) => {
      const configEntries = Object.entries(wanted).map(([name, value]) => ({ name, value }))
      const made = await admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor, configEntries }] })
      if (!made) throw Object.assign(new Error('the topic exists'), { code: 36 }) // its answer to that code alone
    },
    growTopic: (topic, partitions) => new Promise((resolve, reject) => {
      const client = AdminClient.create({ 'bootstrap.servers': address })
      client.createPartitions(topic, partitions, 10000, error => {
        client.disconnect()
        error ? reject(error) : resolve()
      })
    }),
    deleteTopic: topic => admin.deleteTopics({ topics: [topic] }),
    topics: async () => {
      const topics = await admin.listTopics()
      const described = topics.length ? await admin.fetchTopicMetadata({ topics }) : []
      return Object.fromEntries(described.map(topic => [topic.name, topic.partitions.length]))
    },
    brokers: () => new Promise((resolve, reject) => {
      const client = new Producer({ 'bootstrap.servers': address })
      client.connect({}, (error, metadata) => {
        error ? reject(error) : client.disconnect(() => resolve(metadata.brokers.length))
      })
    }),
    deleteRecords: async (topic, before) => {
      const [found] = await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: String(before) }] })
      if (found.error) throw found.error
    },

    write: (topic, records, { codec = 'none', acks = -1, idempotent = false }) =>
      withProducer({ acks, compression: codec, idempotent }, producer => producer.send({
        topic,
        messages: records.map(record => ({
          key: record.key,
          value: record.value,
          partition: 0,
          headers: record.headers || {},
          ...(record.timeMs ? { timestamp: String(record.timeMs) } : {})
        }))
      })),
    read: async (topic, from, count, committed = false) => {
      const { consumer, records } = await subscribe(topic, from, { groupId: unique('reader'), readUncommitted: !committed })
      await until(() => records.length >= count, `${count} records of ${topic}, ${records.length} came`)
      await consumer.disconnect()
      return records
    },
    offsetAt: async (topic, timeMs) => Number((await admin.fetchTopicOffsetsByTimestamp(topic, timeMs))[0].offset),
    ends: async topic => {
      const [found] = await admin.fetchTopicOffsets(topic)
      return [Number(found.low), Number(found.high)]
    },

    join: async (group, topic, instance) => {
      let assignments = 0
      const { consumer, records } = await subscribe(topic, 0, { groupId: group }, {
        ...(instance ? { 'group.instance.id': instance } : {}),
        rebalance_cb: change => { assignments += change.code === ASSIGNED ? 1 : 0 }
      })
      return {
        owned: () => consumer.assignment().map(one => one.partition).sort(),
        assignments: () => assignments,
        records,
        commit: (name, offset) => consumer.commitOffsets([{ topic: name, partition: 0, offset: String(offset) }]),
        close: () => consumer.disconnect()
      }
    },
    groups: async () => (await admin.listGroups()).groups.map(group => group.groupId),
    groupState: async group => {
      const [found] = (await admin.describeGroups([group])).groups
      const [state] = Object.entries(KafkaJS.ConsumerGroupStates).find(([, number]) => number === found.state)
      return [state[0] + state.slice(1).toLowerCase(), found.members.length]
    },
    deleteGroup: group => admin.deleteGroups([group]),
    committed: async (groupId, topic) => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic], requireStableOffsets: true })
      return Number(found.partitions[0].offset)
    },

    transactional: async transactionalId => {
      const producer = kafka.producer({ kafkaJS: { transactionalId } })
      await producer.connect()
      let transaction
      return {
        begin: async () => { transaction = await producer.transaction() },
        send: (topic, value) => transaction.send({ topic, messages: [{ value, partition: 0 }] }),
        sendOffset: async (group, topic, offset) => { // it takes a consumer of the group
          const consumer = kafka.consumer({ kafkaJS: { groupId: group } })
          await consumer.connect()
          await transaction.sendOffsets({ consumer, topics: [{ topic, partitions: [{ partition: 0, offset: String(offset) }] }] })
          await consumer.disconnect()
        },
        commit: () => transaction.commit(),
        abort: () => transaction.abort(),
        close: () => producer.disconnect()
      }
    },
    code: error => {
      // The errors of single topics, groups and partitions lie within that of the whole.
      const [part] = error.errors || error.groups?.map(group => group.error) || error.partitions?.map(one => one.error) || []
      const found = (part || error).code
      if (typeof found !== 'number') throw error
      return found
    },
    fenced: error => FENCED.includes(error.code),
    end: () => admin.disconnect()
  }
}

exports.lacks = { topic_settings_are_altered: 'the client has no way to describe or alter settings' }
