//go:build !old

// What the client can since its later versions.
package main

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func (c confluentClient) AlterTopicSetting(topic, name, value string) error {
	entries := []kafka.ConfigEntry{
		{Name: name, Value: value, IncrementalOperation: kafka.AlterConfigOpTypeSet},
	}
	resources := []kafka.ConfigResource{{Type: kafka.ResourceTopic, Name: topic, Config: entries}}
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		return configFault(admin.IncrementalAlterConfigs(ctx, resources))
	})
}

func (c confluentClient) DeleteRecords(topic string, before int64) error {
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		results, err := admin.DeleteRecords(ctx, []kafka.TopicPartition{partitionOf(topic, before)})
		if err != nil {
			return err
		}
		return results.DeleteRecordsResults[0].TopicPartition.Error
	})
}
