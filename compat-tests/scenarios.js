// What people do with a client, once for the clients in JavaScript that are run by it, named as in the other languages.
// A folder's client.js exports connect(address), whose value says how that client does each of these, at partition 0:
//
//   createTopic(topic, partitions, replicas, settings)   growTopic(topic, partitions)   deleteTopic(topic)
//   topics() -> {name: partitions}   brokers() -> number   deleteRecords(topic, before)
//   topicSetting(topic, name)   alterTopicSetting(topic, name, value)
//   write(topic, records, {codec, acks, idempotent})   read(topic, from, count, committed) -> records
//   offsetAt(topic, timeMs)   ends(topic) -> [first, end]
//   join(group, topic, instance) -> {owned(), assignments(), records, commit(topic, offset), close()}
//   groups() -> names   groupState(group) -> [state, members]   deleteGroup(group)   committed(group, topic)
//   transactional(id) -> {begin(), send(topic, value), sendOffset(group, topic, offset), commit(), abort(), close()}
//   code(error) -> Kafka's error code   fenced(error)   end()   codecs, where it knows not all
//
// and, where it lacks some, exports lacks, {SCENARIO: why the client cannot do it with any broker}.
// A record is {key, value, headers: {name: text}, timeMs, offset}, with texts or null for key and value.
'use strict'

const { randomBytes } = require('node:crypto')
const { expect, main, unique, until } = require('scenario.js')
const { connect, lacks = {} } = require(process.argv[2])

const CODECS = ['none', 'gzip', 'snappy', 'lz4', 'zstd']
const FIRST_TIME_MS = 1700000000000

const numbered = count => Array.from({ length: count }, (_, n) => ({ key: `k${n}`, value: `v${n}` }))
const valuesOf = records => records.map(record => record.value)
const offsetsOf = records => records.map(record => record.offset)
const counting = (from, to) => Array.from({ length: to - from }, (_, n) => from + n)

async function newTopic (client, what, partitions = 1, settings = {}) {
  const topic = unique(what)
  await client.createTopic(topic, partitions, 1, settings)
  await until(async () => (await client.topics())[topic] === partitions, "a topic's partitions")
  return topic
}

async function codeOf (client, act) {
  try {
    await act
  } catch (error) {
    return client.code(error)
  }
  return 0
}

// Waits until the members own so many partitions each, and each partition is owned once.
const untilShared = (members, each, what) => until(() => {
  const owned = members.map(member => member.owned())
  return owned.every(partitions => partitions.length === each) && new Set(owned.flat()).size === each * members.length
}, what)

const came = async (member, count) => {
  await until(() => member.records.length >= count, `${count} records of the group, ${member.records.length} came`)
  return member.records
}

const scenarios = {
  async topics_are_made_described_grown_and_deleted (client) {
    const topic = await newTopic(client, 'topic', 3)
    await client.growTopic(topic, 5)
    await until(async () => (await client.topics())[topic] === 5, 'five partitions')
    await client.deleteTopic(topic)
    await until(async () => !(topic in await client.topics()), "the topic's end")
  },

  async topic_settings_are_altered (client) {
    const topic = await newTopic(client, 'settings', 1, { 'retention.ms': '123456' })
    expect(await client.topicSetting(topic, 'retention.ms'), '123456', 'the setting')
    await client.alterTopicSetting(topic, 'retention.ms', '777000')
    await until(async () => (await client.topicSetting(topic, 'retention.ms')) === '777000', 'the new setting')
  },

  async the_cluster_is_described (client) {
    expect(await client.brokers(), 1, 'brokers')
  },

  async what_cannot_be_is_refused_with_its_code (client) {
    const topic = await newTopic(client, 'refused', 2)
    const code = act => codeOf(client, act)
    expect(await code(client.createTopic(topic, 2, 1, {})), 36, 'code for a topic that exists')
    expect(await code(client.createTopic(unique('a b'), 1, 1, {})), 17, 'code for a name with a space')
    expect(await code(client.createTopic(unique('many'), 1, 3, {})), 38, 'code for three replicas on one broker')
    expect(await code(client.createTopic(unique('wrong'), 1, 1, { 'retention.ms': 'long' })), 40, 'code for a setting that is no number')
    expect(await code(client.growTopic(topic, 1)), 37, 'code for fewer partitions')
    expect(await code(client.deleteTopic(unique('none'))), 3, 'code for a topic that is not there')
    // its coordinator may have to come up
    await until(async () => (await code(client.deleteGroup(unique('none')))) === 69, 'GROUP_ID_NOT_FOUND for a group that is not there')
  },

  async every_codec_comes_back (client) {
    for (const codec of client.codecs || CODECS) {
      const topic = await newTopic(client, codec)
      await client.write(topic, numbered(500), { codec })
      const records = await client.read(topic, 0, 500)
      expect(valuesOf(records), valuesOf(numbered(500)), `values with ${codec}`)
      expect(offsetsOf(records), counting(0, 500), `offsets with ${codec}`)
    }
  },

  async keys_headers_and_times_come_back (client) {
    const topic = await newTopic(client, 'headers')
    const written = [
      { key: 'k', value: null, headers: { a: '1', b: '2' }, timeMs: FIRST_TIME_MS + 123, offset: 0 },
      { key: null, value: 'v', headers: {}, timeMs: FIRST_TIME_MS, offset: 1 }
    ]
    await client.write(topic, written, {})
    expect(await client.read(topic, 0, 2), written, 'what came')
  },

  async acks_and_idempotence_of_every_kind_write (client) {
    for (const how of [{ acks: 0 }, { acks: 1 }, { acks: -1 }, { idempotent: true }]) {
      const topic = await newTopic(client, 'acks')
      await client.write(topic, numbered(300), how)
      expect(valuesOf(await client.read(topic, 0, 300)), valuesOf(numbered(300)), `values with ${JSON.stringify(how)}`)
    }
  },

  async large_records_come_back (client) {
    const topic = await newTopic(client, 'large')
    const records = numbered(8).map(record => ({ ...record, value: randomBytes(450000).toString('hex') }))
    for (const record of records) await client.write(topic, [record], {})
    expect(valuesOf(await client.read(topic, 0, 8)).map((value, n) => value === records[n].value), records.map(() => true), 'the same values')
  },

  async a_record_too_large_is_refused_with_its_code (client) {
    const topic = await newTopic(client, 'toolarge', 1, { 'max.message.bytes': '10000' })
    const value = randomBytes(10000).toString('hex')
    expect(await codeOf(client, client.write(topic, [{ key: null, value }], {})), 10, 'the code')
    await client.write(topic, numbered(3), {})
    expect(valuesOf(await client.read(topic, 0, 3)), valuesOf(numbered(3)), 'values')
  },

  async three_members_share_and_one_leaves (client) {
    const [topic, group] = [await newTopic(client, 'group', 6), unique('group')]
    const members = await Promise.all([0, 1, 2].map(() => client.join(group, topic)))
    await untilShared(members, 2, 'three members with two partitions each')
    await members.pop().close()
    await untilShared(members, 3, 'two members with three partitions each after one left')
    for (const member of members) await member.close()
  },

  async a_static_member_comes_back_to_its_partitions (client) {
    const [topic, group] = [await newTopic(client, 'static', 4), unique('static')]
    const members = await Promise.all(['one', 'two'].map(instance => client.join(group, topic, instance)))
    await untilShared(members, 2, 'two members with two partitions each')
    const [owned, times] = [members[1].owned(), members[0].assignments()]
    await members[1].close()
    members[1] = await client.join(group, topic, 'two')
    await untilShared(members, 2, 'two partitions each when the second came back')
    expect(members[1].owned(), owned, 'the partitions of the one that came back')
    expect(members[0].assignments(), times, 'how often the one that stayed was given partitions')
    for (const member of members) await member.close()
  },

  async commits_are_taken_up_again (client) {
    const [topic, group] = [await newTopic(client, 'commit'), unique('commit')]
    await client.write(topic, numbered(20), {})
    const first = await client.join(group, topic)
    await came(first, 20)
    await first.commit(topic, 7)
    await first.close()
    expect(await client.committed(group, topic), 7, 'the committed offset')
    const second = await client.join(group, topic)
    expect(offsetsOf(await came(second, 13)), counting(7, 20), 'offsets after the commit')
    await second.close()
  },

  async groups_are_listed_described_and_deleted (client) {
    const [topic, group] = [await newTopic(client, 'groups'), unique('groups')]
    const member = await client.join(group, topic)
    await untilShared([member], 1, 'its partition')
    expect((await client.groups()).includes(group), true, 'the group is listed')
    expect(await client.groupState(group), ['Stable', 1], 'its state and members')
    expect(await codeOf(client, client.deleteGroup(group)), 68, 'code for deleting a group with members')
    await member.close()
    await until(async () => (await client.groupState(group))[0] === 'Empty', 'an empty group')
    await client.deleteGroup(group)
    expect((await client.groups()).includes(group), false, 'the group is listed after its end')
  },

  async seeks_go_by_time_and_to_the_ends (client) {
    const topic = await newTopic(client, 'time')
    const records = numbered(10).map((record, n) => ({ ...record, timeMs: FIRST_TIME_MS + n * 1000 }))
    await client.write(topic, records, {})
    const offset = await client.offsetAt(topic, FIRST_TIME_MS + 3500)
    expect(offset, 4, 'the offset by time')
    expect(await client.ends(topic), [0, 10], 'the ends')
    expect(valuesOf(await client.read(topic, offset, 6)), valuesOf(records.slice(4)), 'values from there')
  },

  async records_are_deleted_up_to_an_offset (client) {
    const topic = await newTopic(client, 'deletion')
    await client.write(topic, numbered(10), {})
    await client.deleteRecords(topic, 6)
    expect(await client.ends(topic), [6, 10], 'the ends')
    expect(await codeOf(client, client.deleteRecords(topic, 11)), 1, 'code beyond the end')
  },

  async committed_is_seen_and_aborted_is_not (client) {
    const topic = await newTopic(client, 'txn')
    const producer = await client.transactional(unique('txn'))
    for (const [value, ends] of [['v0', 'commit'], ['v1', 'abort'], ['v2', 'commit']]) {
      await producer.begin()
      await producer.send(topic, value)
      await producer[ends]()
    }
    await producer.close()
    expect(valuesOf(await client.read(topic, 0, 2, true)), ['v0', 'v2'], 'values of read_committed')
    expect(valuesOf(await client.read(topic, 0, 3, false)), ['v0', 'v1', 'v2'], 'values of read_uncommitted')
  },

  async offsets_go_with_the_transaction (client) {
    const [topic, group] = [await newTopic(client, 'txnoffsets'), unique('txnoffsets')]
    await client.write(topic, numbered(20), {})
    const producer = await client.transactional(unique('txnoffsets'))
    for (const [offset, ends] of [[3, 'commit'], [9, 'abort']]) {
      await producer.begin()
      await producer.sendOffset(group, topic, offset)
      await producer[ends]()
    }
    await producer.close()
    expect(await client.committed(group, topic), 3, 'the offset of the committed transaction')
  },

  async a_second_producer_fences_the_first (client) {
    const [topic, id] = [await newTopic(client, 'fence'), unique('fence')]
    const first = await client.transactional(id)
    await first.begin()
    await first.send(topic, 'first')
    const second = await client.transactional(id)
    await second.begin()
    await second.send(topic, 'second')
    await second.commit()
    let fault
    try {
      await first.send(topic, 'late')
      await first.commit()
    } catch (error) {
      fault = error
    }
    if (!fault || !client.fenced(fault)) throw new Error(`the first was not fenced: ${fault}`)
    await Promise.allSettled([first.close(), second.close()])
    expect(valuesOf(await client.read(topic, 0, 1, true)), ['second'], 'values of read_committed')
  }
}

for (const [name, why] of Object.entries(lacks)) {
  console.log(`skipped ${name} (${why})`)
  delete scenarios[name]
}

main(Object.fromEntries(Object.entries(scenarios).map(([name, run]) => [name, async address => {
  const client = await connect(address)
  await run(client)
  await client.end()
}])))
