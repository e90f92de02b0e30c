// Sarama: how it does what the scenarios ask for.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

var codecs = map[string]sarama.CompressionCodec{
	"": sarama.CompressionNone, "none": sarama.CompressionNone, "gzip": sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy, "lz4": sarama.CompressionLZ4, "zstd": sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{
	"": sarama.WaitForAll, "all": sarama.WaitForAll, "1": sarama.WaitForLocal, "0": sarama.NoResponse,
}

type saramaClient struct{ addresses []string }

func newClient(address string) Client { return saramaClient{[]string{address}} }

func newConfig() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.ClientID = "compat"
	config.Producer.Return.Successes = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Retry.Max = 20 // a new partition's leader may take longer than the three tries of the default
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	return config
}

func (c saramaClient) withAdmin(act func(sarama.ClusterAdmin) error) error {
	admin, err := sarama.NewClusterAdmin(c.addresses, newConfig())
	if err != nil {
		return err
	}
	defer admin.Close()
	return act(admin)
}

func (c saramaClient) CreateTopic(topic string, partitions, replicas int, settings map[string]string) error {
	detail := &sarama.TopicDetail{
		NumPartitions: int32(partitions), ReplicationFactor: int16(replicas), ConfigEntries: map[string]*string{},
	}
	for name, value := range settings {
		detail.ConfigEntries[name] = &value
	}
	return c.withAdmin(func(admin sarama.ClusterAdmin) error { return admin.CreateTopic(topic, detail, false) })
}

func (c saramaClient) GrowTopic(topic string, partitions int) error {
	return c.withAdmin(func(admin sarama.ClusterAdmin) error {
		return admin.CreatePartitions(topic, int32(partitions), nil, false)
	})
}

func (c saramaClient) DeleteTopic(topic string) error {
	return c.withAdmin(func(admin sarama.ClusterAdmin) error { return admin.DeleteTopic(topic) })
}

func (c saramaClient) Topics() (map[string]int, error) {
	topics := map[string]int{}
	err := c.withAdmin(func(admin sarama.ClusterAdmin) error {
		found, err := admin.ListTopics()
		for name, detail := range found {
			topics[name] = int(detail.NumPartitions)
		}
		return err
	})
	return topics, err
}

func (c saramaClient) TopicSetting(topic, name string) (value string, err error) {
	err = c.withAdmin(func(admin sarama.ClusterAdmin) error {
		resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{name}}
		entries, err := admin.DescribeConfig(resource)
		if len(entries) == 1 {
			value = entries[0].Value
		}
		return err
	})
	return value, err
}

func (c saramaClient) AlterTopicSetting(topic, name, value string) error {
	return c.withAdmin(func(admin sarama.ClusterAdmin) error {
		entries := map[string]sarama.IncrementalAlterConfigsEntry{
			name: {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value},
		}
		return admin.IncrementalAlterConfig(sarama.TopicResource, topic, entries, false)
	})
}

func (c saramaClient) Brokers() (count int, err error) {
	err = c.withAdmin(func(admin sarama.ClusterAdmin) error {
		brokers, _, err := admin.DescribeCluster()
		count = len(brokers)
		return err
	})
	return count, err
}

func (c saramaClient) DeleteRecords(topic string, before int64) error {
	return c.withAdmin(func(admin sarama.ClusterAdmin) error {
		return admin.DeleteRecords(topic, map[int32]int64{0: before})
	})
}

func (c saramaClient) Write(topic string, records []Record, how Writing) error {
	config := newConfig()
	config.Producer.Compression = codecs[how.Codec]
	config.Producer.RequiredAcks = acks[how.Acks]
	if how.Idempotent {
		config.Producer.Idempotent = true
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(c.addresses, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, len(records))
	for n, record := range records {
		messages[n] = messageOf(topic, record)
	}
	return producer.SendMessages(messages)
}

func messageOf(topic string, record Record) *sarama.ProducerMessage {
	message := &sarama.ProducerMessage{Topic: topic}
	if record.Key != nil {
		message.Key = sarama.ByteEncoder(record.Key)
	}
	if record.Value != nil {
		message.Value = sarama.ByteEncoder(record.Value)
	}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(header[0]), Value: []byte(header[1])})
	}
	if record.TimeMs > 0 {
		message.Timestamp = time.UnixMilli(record.TimeMs)
	}
	return message
}

func recordOf(message *sarama.ConsumerMessage) Record {
	record := Record{
		Key: message.Key, Value: message.Value, TimeMs: message.Timestamp.UnixMilli(), Offset: message.Offset,
	}
	for _, header := range message.Headers {
		record.Headers = append(record.Headers, [2]string{string(header.Key), string(header.Value)})
	}
	return record
}

func (c saramaClient) Read(topic string, from int64, count int, committed bool) ([]Record, error) {
	config := newConfig()
	if committed {
		config.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	consumer, err := sarama.NewConsumer(c.addresses, config)
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	partition, err := consumer.ConsumePartition(topic, 0, from)
	if err != nil {
		return nil, err
	}
	defer partition.Close()
	records := []Record{}
	for len(records) < count {
		select {
		case message := <-partition.Messages():
			records = append(records, recordOf(message))
		case <-time.After(30 * time.Second):
			return records, errors.New("no record within 30 s")
		}
	}
	return records, nil
}

func (c saramaClient) offset(topic string, timeMs int64) (int64, error) {
	client, err := sarama.NewClient(c.addresses, newConfig())
	if err != nil {
		return 0, err
	}
	defer client.Close()
	return client.GetOffset(topic, 0, timeMs)
}

func (c saramaClient) OffsetAt(topic string, timeMs int64) (int64, error) {
	return c.offset(topic, timeMs)
}

func (c saramaClient) Ends(topic string) (int64, int64, error) {
	first, err := c.offset(topic, sarama.OffsetOldest)
	if err != nil {
		return 0, 0, err
	}
	end, err := c.offset(topic, sarama.OffsetNewest)
	return first, end, err
}

// saramaMember is the handler of its own consumer group.
type saramaMember struct {
	group    sarama.ConsumerGroup
	records  chan Record
	ended    chan struct{}
	lock     sync.Mutex
	session  sarama.ConsumerGroupSession
	owned    []int
	assigned int
}

func (c saramaClient) Join(group, topic, instance string) (Member, error) {
	config := newConfig()
	config.Consumer.Group.InstanceId = instance
	joined, err := sarama.NewConsumerGroup(c.addresses, group, config)
	if err != nil {
		return nil, err
	}
	member := &saramaMember{group: joined, records: make(chan Record, 1000), ended: make(chan struct{})}
	go func() {
		defer close(member.ended)
		for {
			err := joined.Consume(context.Background(), []string{topic}, member)
			if errors.Is(err, sarama.ErrClosedConsumerGroup) {
				return
			}
		}
	}()
	return member, nil
}

func (m *saramaMember) Setup(session sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.session, m.owned = session, nil
	m.assigned++
	for _, partitions := range session.Claims() {
		for _, partition := range partitions {
			m.owned = append(m.owned, int(partition))
		}
	}
	return nil
}

func (m *saramaMember) Cleanup(sarama.ConsumerGroupSession) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.owned = nil
	return nil
}

func (m *saramaMember) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.records <- recordOf(message)
		case <-session.Context().Done():
			return nil
		}
	}
}

func (m *saramaMember) Owned() []int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return sorted(append([]int{}, m.owned...))
}

func (m *saramaMember) Assignments() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.assigned
}

func (m *saramaMember) Next() *Record {
	select {
	case record := <-m.records:
		return &record
	case <-time.After(time.Second):
		return nil
	}
}

func (m *saramaMember) Commit(topic string, offset int64) error {
	m.session.MarkOffset(topic, 0, offset, "")
	m.session.Commit()
	return nil
}

func (m *saramaMember) Close() error {
	err := m.group.Close()
	<-m.ended
	return err
}

func (c saramaClient) Groups() (names []string, err error) {
	err = c.withAdmin(func(admin sarama.ClusterAdmin) error {
		groups, err := admin.ListConsumerGroups()
		for name := range groups {
			names = append(names, name)
		}
		return err
	})
	return names, err
}

func (c saramaClient) GroupState(group string) (state string, members int, err error) {
	err = c.withAdmin(func(admin sarama.ClusterAdmin) error {
		groups, err := admin.DescribeConsumerGroups([]string{group})
		if err == nil {
			state, members = groups[0].State, len(groups[0].Members)
		}
		return err
	})
	return state, members, err
}

func (c saramaClient) DeleteGroup(group string) error {
	return c.withAdmin(func(admin sarama.ClusterAdmin) error { return admin.DeleteConsumerGroup(group) })
}

func (c saramaClient) Committed(group, topic string) (offset int64, err error) {
	err = c.withAdmin(func(admin sarama.ClusterAdmin) error {
		found, err := admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: {0}})
		if err == nil {
			offset = found.GetBlock(topic, 0).Offset
		}
		return err
	})
	return offset, err
}

type saramaTransactional struct{ producer sarama.SyncProducer }

func (c saramaClient) Transactional(id string) (Transactional, error) {
	config := newConfig()
	config.Producer.Idempotent = true
	config.Producer.Transaction.ID = id
	config.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer(c.addresses, config)
	return saramaTransactional{producer}, err
}

func (t saramaTransactional) Begin() error { return t.producer.BeginTxn() }

func (t saramaTransactional) Send(topic string, value string) error {
	_, _, err := t.producer.SendMessage(messageOf(topic, Record{Value: []byte(value)}))
	return err
}

func (t saramaTransactional) SendOffset(group, topic string, offset int64) error {
	offsets := map[string][]*sarama.PartitionOffsetMetadata{topic: {{Partition: 0, Offset: offset, LeaderEpoch: -1}}}
	return t.producer.AddOffsetsToTxn(offsets, group)
}

func (t saramaTransactional) Commit() error { return t.producer.CommitTxn() }
func (t saramaTransactional) Abort() error  { return t.producer.AbortTxn() }
func (t saramaTransactional) Close()        { _ = t.producer.Close() }

func (c saramaClient) Code(err error) int {
	var many sarama.ProducerErrors
	if errors.As(err, &many) {
		err = many[0].Err
	}
	var topic *sarama.TopicError
	var partition *sarama.TopicPartitionError
	var code sarama.KError
	switch {
	case errors.As(err, &topic):
		return int(topic.Err)
	case errors.As(err, &partition):
		return int(partition.Err)
	case errors.As(err, &code):
		return int(code)
	}
	if err != nil {
		fail("an error without a code: %v", err)
	}
	return 0
}

func (c saramaClient) Fenced(err error) bool {
	return errors.Is(err, sarama.ErrProducerFenced) || errors.Is(err, sarama.ErrInvalidProducerEpoch)
}
