//go:build old

// What the client did otherwise, or could not, before.
package main

import (
	"context"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func (c confluentClient) AlterTopicSetting(topic, name, value string) error {
	resources := []kafka.ConfigResource{
		{Type: kafka.ResourceTopic, Name: topic, Config: []kafka.ConfigEntry{{Name: name, Value: value}}},
	}
	return c.withAdmin(func(ctx context.Context, admin *kafka.AdminClient) error {
		return configFault(admin.AlterConfigs(ctx, resources))
	})
}

func (c confluentClient) DeleteRecords(topic string, before int64) error {
	lack("the client has no DeleteRecords")
	return nil
}
