// kafkajs as people use it, with its default settings. It knows no flexible versions: the oldest way to speak.
'use strict'

const { CompressionCodecs, CompressionTypes, Kafka, logLevel } = require('kafkajs')
const { expect, main, unique, until } = require('scenario.js')

CompressionCodecs[CompressionTypes.Snappy] = require('kafkajs-snappy')

const kafkaOf = address => new Kafka({ clientId: 'compat', brokers: [address], logLevel: logLevel.NOTHING })

async function withAdmin (address, act) {
  const admin = kafkaOf(address).admin()
  await admin.connect()
  try {
    return await act(admin)
  } finally {
    await admin.disconnect()
  }
}

const makeTopic = (address, topic, numPartitions = 1) =>
  withAdmin(address, admin => admin.createTopics({ topics: [{ topic, numPartitions, replicationFactor: 1 }] }))

async function write (address, topic, count, producerSettings = {}, sendSettings = {}) {
  const producer = kafkaOf(address).producer(producerSettings)
  await producer.connect()
  const messages = Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: `v${n}` }))
  await producer.send({ topic, messages, ...sendSettings })
  await producer.disconnect()
}

async function read (address, topic, count, settings = {}) {
  const consumer = kafkaOf(address).consumer({ groupId: unique('group'), ...settings })
  const seen = []
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({ eachMessage: async ({ message }) => { seen.push(message) } })
  await until(() => seen.length >= count, `${count} records of ${topic}, ${seen.length} came`)
  await consumer.disconnect()
  return seen
}

const values = count => Array.from({ length: count }, (_, n) => `v${n}`)

main({
  async topics_are_made_described_grown_and_deleted (address) {
    const topic = unique('topic')
    await withAdmin(address, async admin => {
      const configEntries = [{ name: 'retention.ms', value: '123456' }]
      expect(await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1, configEntries }] }), true, 'made')
      expect(await admin.createTopics({ topics: [{ topic, numPartitions: 3, replicationFactor: 1 }] }), false, 'made twice')
      await admin.createPartitions({ topicPartitions: [{ topic, count: 5 }] })
      const partitions = async () => (await admin.fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
      await until(async () => (await partitions()) === 5, 'five partitions') // a broker may learn of them a moment later
      const { resources } = await admin.describeConfigs({ includeSynonyms: false, resources: [{ type: 2, name: topic, configNames: ['retention.ms'] }] })
      expect(resources[0].configEntries.map(entry => entry.configValue), ['123456'], 'the setting')
      await admin.alterConfigs({ validateOnly: false, resources: [{ type: 2, name: topic, configEntries: [{ name: 'retention.ms', value: '777' }] }] })
      await admin.deleteTopics({ topics: [topic] })
      await until(async () => !(await admin.listTopics()).includes(topic), 'the topic is not listed after its end')
    })
  },

  async every_codec_comes_back (address) {
    for (const compression of [CompressionTypes.None, CompressionTypes.GZIP, CompressionTypes.Snappy]) {
      const topic = unique('codec')
      await makeTopic(address, topic)
      await write(address, topic, 500, {}, { compression })
      const seen = await read(address, topic, 500)
      expect(seen.map(message => message.value.toString()), values(500), `values with codec ${compression}`)
      expect(seen.map(message => message.offset), values(500).map(value => value.slice(1)), 'offsets')
    }
  },

  async keys_headers_and_times_come_back (address) {
    const topic = unique('headers')
    await makeTopic(address, topic)
    const producer = kafkaOf(address).producer()
    await producer.connect()
    await producer.send({ topic, messages: [{ key: 'k', value: null, headers: { a: '1' }, timestamp: '1700000000123' }] })
    await producer.disconnect()
    const [message] = await read(address, topic, 1)
    expect([message.key.toString(), message.value, message.timestamp, message.headers.a.toString()], ['k', null, '1700000000123', '1'], 'what came')
  },

  async acks_and_idempotence_of_every_kind_write (address) {
    for (const [producerSettings, sendSettings] of [[{}, { acks: 0 }], [{}, { acks: 1 }], [{}, { acks: -1 }], [{ idempotent: true }, {}]]) {
      const topic = unique('acks')
      await makeTopic(address, topic)
      await write(address, topic, 200, producerSettings, sendSettings)
      expect((await read(address, topic, 200)).map(message => message.value.toString()), values(200), 'values')
    }
  },

  async three_members_share_and_one_leaves (address) {
    const [topic, groupId] = [unique('group'), unique('group')]
    await makeTopic(address, topic, 6)
    const owned = new Map()
    const members = await Promise.all([0, 1, 2].map(async () => {
      const consumer = kafkaOf(address).consumer({ groupId })
      consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => owned.set(consumer, payload.memberAssignment[topic] || []))
      await consumer.connect()
      await consumer.subscribe({ topics: [topic] })
      await consumer.run({ eachMessage: async () => {} })
      return consumer
    }))
    const shared = each => () => members.length * each === 6 && members.every(member => (owned.get(member) || []).length === each) &&
      new Set(members.flatMap(member => owned.get(member))).size === 6
    await until(shared(2), 'three members with two partitions each')
    await members.pop().disconnect()
    await until(shared(3), 'two members with three partitions each after one left')
    await Promise.all(members.map(member => member.disconnect()))
  },

  async commits_are_taken_up_again (address) {
    const [topic, groupId] = [unique('commit'), unique('commit')]
    await makeTopic(address, topic)
    await write(address, topic, 20)
    await withAdmin(address, async admin => {
      await admin.setOffsets({ groupId, topic, partitions: [{ partition: 0, offset: '7' }] })
      const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] })
      expect(partitions.map(one => one.offset), ['7'], 'the committed offset')
    })
    const seen = await read(address, topic, 13, { groupId })
    expect(seen.map(message => message.offset), Array.from({ length: 13 }, (_, n) => String(n + 7)), 'offsets after the commit')
    await withAdmin(address, async admin => {
      expect((await admin.listGroups()).groups.some(group => group.groupId === groupId), true, 'the group is listed')
      expect((await admin.describeGroups([groupId])).groups[0].state, 'Empty', 'its state')
      await admin.deleteGroups([groupId])
      expect((await admin.listGroups()).groups.some(group => group.groupId === groupId), false, 'listed after its end')
    })
  },

  async offsets_by_time_and_deleted_records (address) {
    const topic = unique('time')
    await makeTopic(address, topic)
    const producer = kafkaOf(address).producer()
    await producer.connect()
    await producer.send({ topic, messages: Array.from({ length: 10 }, (_, n) => ({ value: `v${n}`, timestamp: String(1700000000000 + n * 1000) })) })
    await producer.disconnect()
    await withAdmin(address, async admin => {
      expect((await admin.fetchTopicOffsetsByTimestamp(topic, 1700000003500))[0].offset, '4', 'the offset by time')
      expect(await admin.fetchTopicOffsets(topic), [{ partition: 0, offset: '10', high: '10', low: '0' }], 'the ends')
      await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '6' }] })
      expect(await admin.fetchTopicOffsets(topic), [{ partition: 0, offset: '10', high: '10', low: '6' }], 'after deletion')
    })
  },

  async transactions_show_what_they_commit (address) {
    const [topic, groupId] = [unique('txn'), unique('txn')]
    await makeTopic(address, topic)
    const producer = kafkaOf(address).producer({ transactionalId: unique('txn'), maxInFlightRequests: 1, idempotent: true })
    await producer.connect()
    for (const [value, commits] of [['a', true], ['b', false], ['c', true]]) {
      const transaction = await producer.transaction()
      await transaction.send({ topic, messages: [{ value }] })
      await transaction.sendOffsets({ consumerGroupId: groupId, topics: [{ topic, partitions: [{ partition: 0, offset: value === 'b' ? '9' : '3' }] }] })
      await (commits ? transaction.commit() : transaction.abort())
    }
    await producer.disconnect()
    expect((await read(address, topic, 2)).map(message => message.value.toString()), ['a', 'c'], 'committed values')
    const [{ partitions }] = await withAdmin(address, admin => admin.fetchOffsets({ groupId, topics: [topic] }))
    expect(partitions.map(one => one.offset), ['3'], 'the offset of the committed transactions')
  },

  async the_cluster_is_described (address) {
    const { brokers, clusterId } = await withAdmin(address, admin => admin.describeCluster())
    expect([brokers.length, clusterId.length > 0], [1, true], 'brokers and id')
  }
})
