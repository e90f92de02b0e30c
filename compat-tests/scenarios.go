// What people do with a client, once for the clients in Go, named as in the other languages.
package main

import (
	"crypto/rand"
	"fmt"
)

const firstTimeMs = int64(1700000000000)

func newTopic(client Client, what string, partitions int, settings ...string) string {
	topic := unique(what)
	wanted := map[string]string{}
	for n := 0; n < len(settings); n += 2 {
		wanted[settings[n]] = settings[n+1]
	}
	must(client.CreateTopic(topic, partitions, 1, wanted), "CreateTopics")
	until(func() bool { return partitionsOf(client, topic) == partitions }, "a topic's partitions")
	return topic
}

// partitionsOf is 0 for a topic that the broker does not know, or not yet.
func partitionsOf(client Client, topic string) int {
	topics, err := client.Topics()
	must(err, "Metadata")
	return topics[topic]
}

func numbered(count int) []Record {
	records := make([]Record, count)
	for n := range records {
		records[n] = Record{Key: fmt.Appendf(nil, "k%d", n), Value: fmt.Appendf(nil, "v%d", n)}
	}
	return records
}

func offsetsOf(records []Record) []int64 {
	offsets := []int64{}
	for _, record := range records {
		offsets = append(offsets, record.Offset)
	}
	return offsets
}

func valuesOf(records []Record) []string {
	values := []string{}
	for _, record := range records {
		values = append(values, string(record.Value))
	}
	return values
}

func counting(from, to int64) []int64 {
	offsets := []int64{}
	for ; from < to; from++ {
		offsets = append(offsets, from)
	}
	return offsets
}

func read(client Client, topic string, from int64, count int, committed bool) []Record {
	records, err := client.Read(topic, from, count, committed)
	must(err, "reading")
	return records
}

func topicsAreMadeDescribedGrownAndDeleted(client Client) {
	topic := newTopic(client, "topic", 3)
	must(client.GrowTopic(topic, 5), "CreatePartitions")
	until(func() bool { return partitionsOf(client, topic) == 5 }, "five partitions")
	must(client.DeleteTopic(topic), "DeleteTopics")
	until(func() bool { return partitionsOf(client, topic) == 0 }, "the topic's end")
}

func topicSettingsAreAltered(client Client) {
	topic := newTopic(client, "settings", 1, "retention.ms", "123456")
	setting := func() string {
		value, err := client.TopicSetting(topic, "retention.ms")
		must(err, "DescribeConfigs")
		return value
	}
	expect(setting(), "123456", "the setting")
	must(client.AlterTopicSetting(topic, "retention.ms", "777000"), "IncrementalAlterConfigs")
	until(func() bool { return setting() == "777000" }, "the new setting")
}

func theClusterIsDescribed(client Client) {
	brokers, err := client.Brokers()
	must(err, "Metadata")
	expect(brokers, 1, "brokers")
}

func whatCannotBeIsRefusedWithItsCode(client Client) {
	topic := newTopic(client, "refused", 2)
	expect(client.Code(client.CreateTopic(topic, 2, 1, nil)), 36, "code for a topic that exists")
	expect(client.Code(client.CreateTopic(unique("a b"), 1, 1, nil)), 17, "code for a name with a space")
	expect(client.Code(client.CreateTopic(unique("many"), 1, 3, nil)), 38, "code for three replicas on one broker")
	wrong := map[string]string{"retention.ms": "long"}
	expect(client.Code(client.CreateTopic(unique("wrong"), 1, 1, wrong)), 40, "code for a setting that is no number")
	expect(client.Code(client.GrowTopic(topic, 1)), 37, "code for fewer partitions")
	expect(client.Code(client.DeleteTopic(unique("none"))), 3, "code for a topic that is not there")
	until(func() bool { // its coordinator may have to come up
		return client.Code(client.DeleteGroup(unique("none"))) == 69
	}, "GROUP_ID_NOT_FOUND for a group that is not there")
}

func everyCodecComesBack(client Client) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		topic := newTopic(client, codec, 1)
		must(client.Write(topic, numbered(500), Writing{Codec: codec}), "writing with "+codec)
		records := read(client, topic, 0, 500, false)
		expect(valuesOf(records), valuesOf(numbered(500)), "values with "+codec)
		expect(offsetsOf(records), counting(0, 500), "offsets with "+codec)
	}
}

func keysHeadersAndTimesComeBack(client Client) {
	topic := newTopic(client, "headers", 1)
	written := []Record{
		{Key: []byte("k"), Value: nil, Headers: [][2]string{{"a", "1"}, {"b", "2"}, {"a", "3"}}, TimeMs: firstTimeMs + 123},
		{Key: nil, Value: []byte("v"), TimeMs: firstTimeMs, Offset: 1},
	}
	must(client.Write(topic, written, Writing{}), "writing")
	expect(read(client, topic, 0, 2, false), written, "what came")
}

func acksAndIdempotenceOfEveryKindWrite(client Client) {
	for _, how := range []Writing{{Acks: "0"}, {Acks: "1"}, {Acks: "all"}, {Idempotent: true}} {
		topic := newTopic(client, "acks", 1)
		must(client.Write(topic, numbered(300), how), "writing")
		expect(valuesOf(read(client, topic, 0, 300, false)), valuesOf(numbered(300)), fmt.Sprintf("values with %+v", how))
	}
}

func largeRecordsComeBack(client Client) {
	topic := newTopic(client, "large", 1)
	records := numbered(8)
	for n := range records {
		records[n].Value = make([]byte, 900_000)
		_, _ = rand.Read(records[n].Value)
	}
	must(client.Write(topic, records, Writing{}), "writing")
	expect(valuesOf(read(client, topic, 0, 8, false)), valuesOf(records), "values")
}

func aRecordTooLargeIsRefusedWithItsCode(client Client) {
	topic := newTopic(client, "toolarge", 1, "max.message.bytes", "10000")
	large := make([]byte, 20_000)
	_, _ = rand.Read(large)
	expect(client.Code(client.Write(topic, []Record{{Value: large}}, Writing{})), 10, "the code")
	must(client.Write(topic, numbered(3), Writing{}), "writing what is small")
	expect(valuesOf(read(client, topic, 0, 3, false)), valuesOf(numbered(3)), "values")
}

func join(client Client, group, topic, instance string) Member {
	member, err := client.Join(group, topic, instance)
	must(err, "joining")
	return member
}

// untilShared waits until the members own so many partitions each, and each partition is owned once.
func untilShared(members []Member, each int, what string) {
	until(func() bool {
		owned := map[int]bool{}
		for _, member := range members {
			partitions := member.Owned()
			if len(partitions) != each {
				return false
			}
			for _, partition := range partitions {
				owned[partition] = true
			}
		}
		return len(owned) == each*len(members)
	}, what)
}

func threeMembersShareAndOneLeaves(client Client) {
	topic, group := newTopic(client, "group", 6), unique("group")
	members := []Member{join(client, group, topic, ""), join(client, group, topic, ""), join(client, group, topic, "")}
	untilShared(members, 2, "three members with two partitions each")
	must(members[2].Close(), "leaving")
	untilShared(members[:2], 3, "two members with three partitions each after one left")
	for _, member := range members[:2] {
		must(member.Close(), "leaving")
	}
}

func aStaticMemberComesBackToItsPartitions(client Client) {
	topic, group := newTopic(client, "static", 4), unique("static")
	members := []Member{join(client, group, topic, "one"), join(client, group, topic, "two")}
	untilShared(members, 2, "two members with two partitions each")
	owned, times := members[1].Owned(), members[0].Assignments()
	must(members[1].Close(), "closing")
	members[1] = join(client, group, topic, "two")
	untilShared(members, 2, "two partitions each when the second came back")
	expect(members[1].Owned(), owned, "the partitions of the one that came back")
	expect(members[0].Assignments(), times, "how often the one that stayed was given partitions")
	for _, member := range members {
		must(member.Close(), "leaving")
	}
}

func next(member Member, count int) []Record {
	records := []Record{}
	until(func() bool {
		if record := member.Next(); record != nil {
			records = append(records, *record)
		}
		return len(records) >= count
	}, "records of the group")
	return records
}

func commitsAreTakenUpAgain(client Client) {
	topic, group := newTopic(client, "commit", 1), unique("commit")
	must(client.Write(topic, numbered(20), Writing{}), "writing")
	first := join(client, group, topic, "")
	next(first, 20)
	must(first.Commit(topic, 7), "OffsetCommit")
	must(first.Close(), "leaving")
	committed, err := client.Committed(group, topic)
	must(err, "OffsetFetch")
	expect(committed, int64(7), "the committed offset")
	second := join(client, group, topic, "")
	expect(offsetsOf(next(second, 13)), counting(7, 20), "offsets after the commit")
	must(second.Close(), "leaving")
}

func groupsAreListedDescribedAndDeleted(client Client) {
	topic, group := newTopic(client, "groups", 1), unique("groups")
	member := join(client, group, topic, "")
	untilShared([]Member{member}, 1, "its partition")
	listed := func() bool {
		groups, err := client.Groups()
		must(err, "ListGroups")
		for _, name := range groups {
			if name == group {
				return true
			}
		}
		return false
	}
	state := func() []any {
		found, members, err := client.GroupState(group)
		must(err, "DescribeGroups")
		return []any{found, members}
	}
	expect(listed(), true, "the group is listed")
	expect(state(), []any{"Stable", 1}, "its state and members")
	expect(client.Code(client.DeleteGroup(group)), 68, "code for deleting a group with members")
	must(member.Close(), "leaving")
	until(func() bool { return state()[0] == "Empty" }, "an empty group")
	must(client.DeleteGroup(group), "DeleteGroups")
	expect(listed(), false, "the group is listed after its end")
}

func seeksGoByTimeAndToTheEnds(client Client) {
	topic := newTopic(client, "time", 1)
	records := numbered(10)
	for n := range records {
		records[n].TimeMs = firstTimeMs + int64(n)*1000
	}
	must(client.Write(topic, records, Writing{}), "writing")
	offset, err := client.OffsetAt(topic, firstTimeMs+3500)
	must(err, "ListOffsets")
	expect(offset, int64(4), "the offset by time")
	first, end, err := client.Ends(topic)
	must(err, "ListOffsets")
	expect([]int64{first, end}, []int64{0, 10}, "the ends")
	expect(valuesOf(read(client, topic, offset, 6, false)), valuesOf(records[4:]), "values from there")
}

func recordsAreDeletedUpToAnOffset(client Client) {
	topic := newTopic(client, "deletion", 1)
	must(client.Write(topic, numbered(10), Writing{}), "writing")
	must(client.DeleteRecords(topic, 6), "DeleteRecords")
	first, end, err := client.Ends(topic)
	must(err, "ListOffsets")
	expect([]int64{first, end}, []int64{6, 10}, "the ends")
	expect(client.Code(client.DeleteRecords(topic, 11)), 1, "code beyond the end")
}

func begin(client Client, id string) Transactional {
	producer, err := client.Transactional(id)
	must(err, "InitProducerId")
	must(producer.Begin(), "beginning")
	return producer
}

func committedIsSeenAndAbortedIsNot(client Client) {
	topic := newTopic(client, "txn", 1)
	producer := begin(client, unique("txn"))
	for n, commits := range []bool{true, false, true} {
		if n > 0 {
			must(producer.Begin(), "beginning")
		}
		must(producer.Send(topic, fmt.Sprintf("v%d", n)), "sending")
		if commits {
			must(producer.Commit(), "committing")
		} else {
			must(producer.Abort(), "aborting")
		}
	}
	producer.Close()
	expect(valuesOf(read(client, topic, 0, 2, true)), []string{"v0", "v2"}, "values of read_committed")
	expect(valuesOf(read(client, topic, 0, 3, false)), []string{"v0", "v1", "v2"}, "values of read_uncommitted")
}

func offsetsGoWithTheTransaction(client Client) {
	topic, group := newTopic(client, "txnoffsets", 1), unique("txnoffsets")
	must(client.Write(topic, numbered(20), Writing{}), "writing")
	producer := begin(client, unique("txnoffsets"))
	must(producer.SendOffset(group, topic, 3), "TxnOffsetCommit")
	must(producer.Commit(), "committing")
	must(producer.Begin(), "beginning")
	must(producer.SendOffset(group, topic, 9), "TxnOffsetCommit")
	must(producer.Abort(), "aborting")
	producer.Close()
	committed, err := client.Committed(group, topic)
	must(err, "OffsetFetch")
	expect(committed, int64(3), "the offset of the committed transaction")
}

func aSecondProducerFencesTheFirst(client Client) {
	topic, id := newTopic(client, "fence", 1), unique("fence")
	first := begin(client, id)
	must(first.Send(topic, "first"), "sending")
	second := begin(client, id)
	must(second.Send(topic, "second"), "sending")
	must(second.Commit(), "committing")
	err := first.Send(topic, "late")
	if err == nil {
		err = first.Commit()
	}
	if err == nil || !client.Fenced(err) {
		fail("the first was not fenced: %v", err)
	}
	first.Close()
	second.Close()
	expect(valuesOf(read(client, topic, 0, 1, true)), []string{"second"}, "values of read_committed")
}

var scenarios = []struct {
	name string
	run  func(Client)
}{
	{"topics_are_made_described_grown_and_deleted", topicsAreMadeDescribedGrownAndDeleted},
	{"topic_settings_are_altered", topicSettingsAreAltered},
	{"the_cluster_is_described", theClusterIsDescribed},
	{"what_cannot_be_is_refused_with_its_code", whatCannotBeIsRefusedWithItsCode},
	{"every_codec_comes_back", everyCodecComesBack},
	{"keys_headers_and_times_come_back", keysHeadersAndTimesComeBack},
	{"acks_and_idempotence_of_every_kind_write", acksAndIdempotenceOfEveryKindWrite},
	{"large_records_come_back", largeRecordsComeBack},
	{"a_record_too_large_is_refused_with_its_code", aRecordTooLargeIsRefusedWithItsCode},
	{"three_members_share_and_one_leaves", threeMembersShareAndOneLeaves},
	{"a_static_member_comes_back_to_its_partitions", aStaticMemberComesBackToItsPartitions},
	{"commits_are_taken_up_again", commitsAreTakenUpAgain},
	{"groups_are_listed_described_and_deleted", groupsAreListedDescribedAndDeleted},
	{"seeks_go_by_time_and_to_the_ends", seeksGoByTimeAndToTheEnds},
	{"records_are_deleted_up_to_an_offset", recordsAreDeletedUpToAnOffset},
	{"committed_is_seen_and_aborted_is_not", committedIsSeenAndAbortedIsNot},
	{"offsets_go_with_the_transaction", offsetsGoWithTheTransaction},
	{"a_second_producer_fences_the_first", aSecondProducerFencesTheFirst},
}
