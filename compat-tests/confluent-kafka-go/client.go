// confluent-kafka-go: how it does what the scenarios ask for. It carries librdkafka for Linux with glibc.
package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

const timeoutMs = 30_000

type confluentClient struct{ address string }

func newClient(address string) Client { return confluentClient{address} }

func (c confluentClient) withAdmin(act func(context.Context, *kafka.AdminClient) error) error {
	admin, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": c.address})
	if err != nil {
		return err
	}
	defer admin.Close()
	ctx, cancel := context.WithTimeout(context.Background(), timeoutMs*time.Millisecond)
	defer cancel()
	return act(ctx, admin)
}

func topicFault(results []kafka.TopicResult, err error) error {
	if err == nil && results[0].Error.Code() != kafka.ErrNoError {
		return results[0].Error
	}
	return err
}

func (c confluentClient) CreateTopic(topic string, partitions, replicas int, settings map[string]string) error {
	wanted := []kafka.TopicSpecification{
		{Topic: topic, NumPartitions: partitions, ReplicationFactor: replicas, Config: settings},
	}
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		return topicFault(admin.CreateTopics(ctx, wanted))
	})
}

func (c confluentClient) GrowTopic(topic string, partitions int) error {
	wanted := []kafka.PartitionsSpecification{{Topic: topic, IncreaseTo: partitions}}
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		return topicFault(admin.CreatePartitions(ctx, wanted))
	})
}

func (c confluentClient) DeleteTopic(topic string) error {
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		return topicFault(admin.DeleteTopics(ctx, []string{topic}))
	})
}

func (c confluentClient) metadata() (found *kafka.Metadata, err error) {
	err = c.withAdmin(func(_ context.Context, admin *kafka.AdminClient) error {
		found, err = admin.GetMetadata(nil, true, timeoutMs)
		return err
	})
	return found, err
}

func (c confluentClient) Topics() (map[string]int, error) {
	found, err := c.metadata()
	if err != nil {
		return nil, err
	}
	topics := map[string]int{}
	for name, topic := range found.Topics {
		topics[name] = len(topic.Partitions)
	}
	return topics, nil
}

func (c confluentClient) Brokers() (int, error) {
	found, err := c.metadata()
	if err != nil {
		return 0, err
	}
	return len(found.Brokers), nil
}

func configFault(results []kafka.ConfigResourceResult, err error) error {
	if err == nil && results[0].Error.Code() != kafka.ErrNoError {
		return results[0].Error
	}
	return err
}

func (c confluentClient) TopicSetting(topic, name string) (value string, err error) {
	resources := []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic}}
	err = c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		results, err := admin.DescribeConfigs(ctx, resources)
		if err = configFault(results, err); err == nil {
			value = results[0].Config[name].Value
		}
		return err
	})
	return value, err
}

func partitionOf(topic string, offset int64) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: &topic, Partition: 0, Offset: kafka.Offset(offset)}
}

func (c confluentClient) Write(topic string, records []Record, how Writing) error {
	config := kafka.ConfigMap{
		"bootstrap.servers": c.address, "message.max.bytes": 2_000_000, "linger.ms": 5, "acks": "all",
		"enable.idempotence": how.Idempotent,
	}
	if how.Codec != "" {
		config["compression.type"] = how.Codec
	}
	if how.Acks != "" {
		config["acks"] = how.Acks
	}
	producer, err := kafka.NewProducer(&config)
	if err != nil {
		return err
	}
	defer producer.Close()
	delivered := make(chan kafka.Event, len(records))
	for _, record := range records {
		if err := producer.Produce(messageOf(topic, record), delivered); err != nil {
			return err
		}
	}
	for range records {
		if err := (<-delivered).(*kafka.Message).TopicPartition.Error; err != nil {
			return err
		}
	}
	return nil
}

func messageOf(topic string, record Record) *kafka.Message {
	message := &kafka.Message{TopicPartition: partitionOf(topic, 0), Key: record.Key, Value: record.Value}
	for _, header := range record.Headers {
		message.Headers = append(message.Headers, kafka.Header{Key: header[0], Value: []byte(header[1])})
	}
	if record.TimeMs > 0 {
		message.Timestamp = time.UnixMilli(record.TimeMs)
	}
	return message
}

func recordOf(message *kafka.Message) Record {
	record := Record{
		Key: message.Key, Value: message.Value, TimeMs: message.Timestamp.UnixMilli(),
		Offset: int64(message.TopicPartition.Offset),
	}
	for _, header := range message.Headers {
		record.Headers = append(record.Headers, [2]string{header.Key, string(header.Value)})
	}
	return record
}

func (c confluentClient) consumer(group string, more kafka.ConfigMap) (*kafka.Consumer, error) {
	config := kafka.ConfigMap{
		"bootstrap.servers": c.address, "group.id": group, "enable.auto.commit": false, "auto.offset.reset": "earliest",
	}
	for name, value := range more {
		config[name] = value
	}
	return kafka.NewConsumer(&config)
}

func (c confluentClient) Read(topic string, from int64, count int, committed bool) ([]Record, error) {
	isolation := "read_uncommitted"
	if committed {
		isolation = "read_committed"
	}
	consumer, err := c.consumer(unique("reader"), kafka.ConfigMap{"isolation.level": isolation})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	if err := consumer.Assign([]kafka.TopicPartition{partitionOf(topic, from)}); err != nil {
		return nil, err
	}
	records := []Record{}
	for len(records) < count {
		message, err := consumer.ReadMessage(timeoutMs * time.Millisecond)
		if err != nil {
			return records, err
		}
		records = append(records, recordOf(message))
	}
	return records, nil
}

func (c confluentClient) OffsetAt(topic string, timeMs int64) (int64, error) {
	consumer, err := c.consumer(unique("reader"), nil)
	if err != nil {
		return 0, err
	}
	defer consumer.Close()
	found, err := consumer.OffsetsForTimes([]kafka.TopicPartition{partitionOf(topic, timeMs)}, timeoutMs)
	if err != nil {
		return 0, err
	}
	return int64(found[0].Offset), found[0].Error
}

func (c confluentClient) Ends(topic string) (int64, int64, error) {
	consumer, err := c.consumer(unique("reader"), nil)
	if err != nil {
		return 0, 0, err
	}
	defer consumer.Close()
	return consumer.QueryWatermarkOffsets(topic, 0, timeoutMs)
}

// confluentMember polls in a goroutine of its own, as a member has to.
type confluentMember struct {
	consumer *kafka.Consumer
	records  chan Record
	stop     chan struct{}
	ended    chan struct{}
	lock     sync.Mutex
	owned    []int
	assigned int
}

func (c confluentClient) Join(group, topic, instance string) (Member, error) {
	more := kafka.ConfigMap{}
	if instance != "" {
		more["group.instance.id"] = instance
	}
	consumer, err := c.consumer(group, more)
	if err != nil {
		return nil, err
	}
	member := &confluentMember{
		consumer: consumer, records: make(chan Record, 1000), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := consumer.SubscribeTopics([]string{topic}, member.rebalanced); err != nil {
		return nil, err
	}
	go member.poll()
	return member, nil
}

func (m *confluentMember) rebalanced(consumer *kafka.Consumer, event kafka.Event) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	switch change := event.(type) {
	case kafka.AssignedPartitions:
		m.assigned++
		m.owned = nil
		for _, partition := range change.Partitions {
			m.owned = append(m.owned, int(partition.Partition))
		}
	case kafka.RevokedPartitions:
		m.owned = nil
	}
	return nil
}

func (m *confluentMember) poll() {
	defer close(m.ended)
	for {
		select {
		case <-m.stop:
			return
		default:
		}
		if message, ok := m.consumer.Poll(100).(*kafka.Message); ok && message.TopicPartition.Error == nil {
			m.records <- recordOf(message)
		}
	}
}

func (m *confluentMember) Owned() []int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return sorted(append([]int{}, m.owned...))
}

func (m *confluentMember) Assignments() int {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.assigned
}

func (m *confluentMember) Next() *Record {
	select {
	case record := <-m.records:
		return &record
	case <-time.After(time.Second):
		return nil
	}
}

func (m *confluentMember) Commit(topic string, offset int64) error {
	found, err := m.consumer.CommitOffsets([]kafka.TopicPartition{partitionOf(topic, offset)})
	if err != nil {
		return err
	}
	return found[0].Error
}

func (m *confluentMember) Close() error {
	close(m.stop)
	<-m.ended
	return m.consumer.Close()
}

func (c confluentClient) Groups() (names []string, err error) {
	err = c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		found, err := admin.ListConsumerGroups(ctx)
		for _, group := range found.Valid {
			names = append(names, group.GroupID)
		}
		return err
	})
	return names, err
}

func (c confluentClient) GroupState(group string) (state string, members int, err error) {
	err = c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		found, err := admin.DescribeConsumerGroups(ctx, []string{group})
		if err != nil {
			return err
		}
		described := found.ConsumerGroupDescriptions[0]
		state, members = described.State.String(), len(described.Members)
		if described.Error.Code() != kafka.ErrNoError {
			return described.Error
		}
		return nil
	})
	return state, members, err
}

func (c confluentClient) DeleteGroup(group string) error {
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		found, err := admin.DeleteConsumerGroups(ctx, []string{group})
		if err == nil && found.ConsumerGroupResults[0].Error.Code() != kafka.ErrNoError {
			return found.ConsumerGroupResults[0].Error
		}
		return err
	})
}

func (c confluentClient) Committed(group, topic string) (offset int64, err error) {
	wanted := []kafka.ConsumerGroupTopicPartitions{
		{Group: group, Partitions: []kafka.TopicPartition{partitionOf(topic, 0)}},
	}
	err = c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		found, err := admin.ListConsumerGroupOffsets(ctx, wanted, kafka.SetAdminRequireStableOffsets(true))
		if err == nil {
			partition := found.ConsumerGroupsTopicPartitions[0].Partitions[0]
			offset, err = int64(partition.Offset), partition.Error
		}
		return err
	})
	return offset, err
}

type confluentTransactional struct{ producer *kafka.Producer }

func (c confluentClient) Transactional(id string) (Transactional, error) {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": c.address, "transactional.id": id})
	if err != nil {
		return nil, err
	}
	return confluentTransactional{producer}, producer.InitTransactions(context.Background())
}

func (t confluentTransactional) Begin() error { return t.producer.BeginTransaction() }

func (t confluentTransactional) Send(topic string, value string) error {
	delivered := make(chan kafka.Event, 1)
	if err := t.producer.Produce(messageOf(topic, Record{Value: []byte(value)}), delivered); err != nil {
		return err
	}
	return (<-delivered).(*kafka.Message).TopicPartition.Error
}

func (t confluentTransactional) SendOffset(group, topic string, offset int64) error {
	metadata, err := kafka.NewTestConsumerGroupMetadata(group)
	if err != nil {
		return err
	}
	offsets := []kafka.TopicPartition{partitionOf(topic, offset)}
	return t.producer.SendOffsetsToTransaction(context.Background(), offsets, metadata)
}

func (t confluentTransactional) Commit() error {
	return t.producer.CommitTransaction(context.Background())
}
func (t confluentTransactional) Abort() error {
	return t.producer.AbortTransaction(context.Background())
}
func (t confluentTransactional) Close() { t.producer.Close() }

func (c confluentClient) Code(err error) int {
	var found kafka.Error
	if errors.As(err, &found) {
		return int(found.Code())
	}
	if err != nil {
		fail("an error without a code: %v", err)
	}
	return 0
}

func (c confluentClient) Fenced(err error) bool {
	var found kafka.Error
	codes := map[kafka.ErrorCode]bool{
		kafka.ErrFenced: true, kafka.ErrProducerFenced: true, kafka.ErrInvalidProducerEpoch: true,
		kafka.ErrPurgeQueue: true, // what is not sent yet when the producer learns of it
	}
	return errors.As(err, &found) && codes[found.Code()]
}
