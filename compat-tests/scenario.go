// What the scenario programs in Go share: what a client has to do for scenarios.go, and how scenarios are run.
// A folder's client.go says how its client does each (newClient); all are compiled into one program outside the tree.
// One line a test on standard output, as suite.py tells; names in COMPAT_TESTS (a line each) choose some.
package main

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strings"
	"time"
)

const scenarioTimeout = 60 * time.Second

// Record is what is written and read; Offset counts when it is read only.
type Record struct {
	Key, Value []byte
	Headers    [][2]string
	TimeMs     int64
	Offset     int64
}

// Writing says how records are written; its zero value is the client's default with acks=all.
type Writing struct {
	Codec      string
	Acks       string // "0", "1", "all"
	Idempotent bool
}

// Member is a consumer that subscribes to a topic in a group.
type Member interface {
	Owned() []int     // the partitions that it owns now
	Assignments() int // how often it was given some
	Next() *Record    // the next record, nil when none came within a second
	Commit(topic string, offset int64) error
	Close() error // a member with an instance id does not leave the group by it
}

// Transactional is a producer with a transactional id.
type Transactional interface {
	Begin() error
	Send(topic string, value string) error
	SendOffset(group, topic string, offset int64) error
	Commit() error
	Abort() error
	Close()
}

// Client is what each client can do, in its own way, at partition 0 where none is named.
type Client interface {
	CreateTopic(topic string, partitions, replicas int, settings map[string]string) error
	GrowTopic(topic string, partitions int) error
	DeleteTopic(topic string) error
	Topics() (map[string]int, error) // names and how many partitions
	TopicSetting(topic, name string) (string, error)
	AlterTopicSetting(topic, name, value string) error
	Brokers() (int, error)
	DeleteRecords(topic string, before int64) error
	Write(topic string, records []Record, how Writing) error
	Read(topic string, from int64, count int, committed bool) ([]Record, error)
	OffsetAt(topic string, timeMs int64) (int64, error)
	Ends(topic string) (int64, int64, error)
	Join(group, topic, instance string) (Member, error)
	Groups() ([]string, error)
	GroupState(group string) (string, int, error) // its state and how many members
	DeleteGroup(group string) error
	Committed(group, topic string) (int64, error)
	Transactional(id string) (Transactional, error)
	Code(err error) int // Kafka's error code
	Fenced(err error) bool
}

type fault string

type lacking string

// lack ends a scenario as skipped: the client cannot do it, with any broker.
func lack(why string) { panic(lacking(why)) }

func fail(format string, arguments ...any) { panic(fault(fmt.Sprintf(format, arguments...))) }

func must(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

func expect(actual, expected any, what string) {
	if !reflect.DeepEqual(actual, expected) {
		fail("%s: expected %s, got %s", what, shortened(expected), shortened(actual))
	}
}

func shortened(value any) string {
	text := fmt.Sprintf("%v", value)
	if len(text) > 300 {
		return fmt.Sprintf("%s… (%d characters)", text[:300], len(text))
	}
	return text
}

func until(done func() bool, what string) {
	for deadline := time.Now().Add(30 * time.Second); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			fail("not within 30 s: %s", what)
		}
	}
}

func unique(what string) string {
	bytes := make([]byte, 4)
	_, _ = rand.Read(bytes)
	return "compat-" + what + "-" + hex.EncodeToString(bytes)
}

// runOne tells how a scenario ended, and why if not well.
func runOne(run func(Client)) (verdict, why string) {
	ended := make(chan [2]string, 1)
	go func() {
		defer func() {
			switch thrown := recover().(type) {
			case nil:
				ended <- [2]string{"ok", ""}
			case lacking:
				ended <- [2]string{"skipped", string(thrown)}
			default:
				ended <- [2]string{"FAILED", fmt.Sprint(thrown)}
			}
		}()
		run(newClient(os.Getenv("BOOTSTRAP_SERVERS")))
	}()
	select {
	case found := <-ended:
		return found[0], found[1]
	case <-time.After(scenarioTimeout):
		return "FAILED", fmt.Sprintf("still running after %s", scenarioTimeout)
	}
}

func sorted(partitions []int) []int {
	sort.Ints(partitions)
	return partitions
}

func main() {
	chosen := strings.Fields(os.Getenv("COMPAT_TESTS"))
	for _, scenario := range scenarios {
		if len(chosen) > 0 && !strings.Contains("\n"+strings.Join(chosen, "\n")+"\n", "\n"+scenario.name+"\n") {
			continue
		}
		began := time.Now()
		verdict, why := runOne(scenario.run)
		if verdict == "skipped" {
			fmt.Printf("%s %s (%s)\n", verdict, scenario.name, why)
			continue
		}
		fmt.Printf("%s %s (%.1f s)\n", verdict, scenario.name, time.Since(began).Seconds())
		if why != "" {
			fmt.Printf("       %s\n", strings.ReplaceAll(why, "\n", "\n       "))
		}
	}
	os.Exit(0) // what a failed scenario left open does not hold up the end
}
