// Members with franz-go. The lines they speak: README.md.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	_ "unsafe" // for the clock that other programs of this machine read too

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	commitInterval = 500 * time.Millisecond
	pollWait       = 100 * time.Millisecond
	turn           = 250 * time.Millisecond
	late           = time.Second
)

//go:linkname nanotime runtime.nanotime
func nanotime() int64

var (
	writing sync.Mutex
	topic   string
	group   string
	address string
	options = map[string]string{}
)

func say(member, what string, words ...string) {
	line := append([]string{member, what, fmt.Sprintf("%.6f", float64(nanotime())/1e9)}, words...)
	writing.Lock()
	defer writing.Unlock()
	fmt.Println(strings.Join(line, " "))
}

func listed(partitions []int32) string {
	if len(partitions) == 0 {
		return "-"
	}
	slices.Sort(partitions)
	words := make([]string, len(partitions))
	for i, partition := range partitions {
		words[i] = strconv.Itoa(int(partition))
	}
	return strings.Join(words, ",")
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return value
}

func milliseconds(name string) time.Duration {
	return time.Duration(must(strconv.Atoi(options[name]))) * time.Millisecond
}

// member handles records in one goroutine; its listener is called between polls only (BlockRebalanceOnPoll).
type member struct {
	name      string
	client    *kgo.Client
	ending    atomic.Bool
	done      chan struct{}
	mutex     sync.Mutex
	positions map[int32]int64
	owned     map[int32]bool
}

func balancer() kgo.GroupBalancer {
	switch options["assignor"] {
	case "range":
		return kgo.RangeBalancer()
	case "roundrobin":
		return kgo.RoundRobinBalancer()
	case "sticky", "uniform":
		return kgo.StickyBalancer()
	}
	return kgo.CooperativeStickyBalancer()
}

func join(name, instance string) *member {
	m := &member{name: name, done: make(chan struct{}), positions: map[int32]int64{}, owned: map[int32]bool{}}
	settings := []kgo.Opt{
		kgo.SeedBrokers(address), kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.Balancers(balancer()), kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.OnPartitionsAssigned(m.assigned), kgo.OnPartitionsRevoked(m.revoked), kgo.OnPartitionsLost(m.lost),
	}
	if options["protocol"] == "consumer" {
		settings = append(settings, kgo.ServerSideBalancer())
	} else {
		settings = append(settings, kgo.SessionTimeout(milliseconds("session_ms")),
			kgo.HeartbeatInterval(milliseconds("heartbeat_ms")))
	}
	if instance != "" {
		settings = append(settings, kgo.InstanceID(instance))
	}
	m.client = must(kgo.NewClient(settings...))
	go m.run()
	return m
}

func (m *member) run() {
	defer close(m.done)
	committed := time.Now()
	for !m.ending.Load() {
		waiting, cancel := context.WithTimeout(context.Background(), pollWait)
		fetches := m.client.PollRecords(waiting, 500)
		cancel()
		fetches.EachPartition(func(polled kgo.FetchTopicPartition) {
			var session *kgo.ErrGroupSession // said for information; the client joins anew by itself
			if polled.Err != nil && !errors.Is(polled.Err, context.DeadlineExceeded) && !errors.As(polled.Err, &session) {
				say(m.name, "fault", polled.Err.Error())
			}
			m.handle(polled.Partition, polled.Records)
		})
		if time.Since(committed) >= commitInterval {
			committed = time.Now()
			m.commitOrKeep()
		}
		m.client.AllowRebalance()
	}
	m.commitOrKeep() // a client that is closed commits nothing, and says nothing of it
	m.client.CloseAllowingRebalance()
	if left := keys(m.owned); len(left) > 0 { // a static one that closes is not told by its listener
		m.revoked(context.Background(), m.client, map[string][]int32{topic: left})
	}
	say(m.name, "left")
}

func (m *member) handle(partition int32, records []*kgo.Record) {
	if len(records) == 0 {
		return
	}
	first, last := records[0].Offset, records[0].Offset-1
	tell := func() {
		say(m.name, "handled", fmt.Sprint(partition), fmt.Sprint(first), fmt.Sprint(last))
	}
	for _, record := range records {
		if record.Offset != last+1 {
			tell()
			first = record.Offset
		}
		last = record.Offset
	}
	tell()
	m.mutex.Lock()
	m.positions[partition] = last + 1
	m.mutex.Unlock()
}

// taken takes out what is to be committed for these partitions, or for all.
func (m *member) taken(partitions []int32) map[int32]int64 {
	found := map[int32]int64{}
	for partition, offset := range m.positions {
		if partitions == nil || slices.Contains(partitions, partition) {
			found[partition] = offset
			delete(m.positions, partition)
		}
	}
	return found
}

func (m *member) commit(positions map[int32]int64) error {
	if len(positions) == 0 {
		return nil
	}
	offsets := map[int32]kgo.EpochOffset{}
	for partition, offset := range positions {
		offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
	}
	var failed error
	m.client.CommitOffsetsSync(context.Background(), map[string]map[int32]kgo.EpochOffset{topic: offsets},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failed = err
			if response == nil {
				return
			}
			for _, each := range response.Topics {
				for _, partition := range each.Partitions {
					if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
						failed = err
					}
				}
			}
		})
	return failed
}

// commitOrKeep leaves to the listener what cannot be committed while the group changes.
func (m *member) commitOrKeep() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	positions := m.taken(nil)
	err := m.commit(positions)
	if err == nil {
		return
	}
	for partition, offset := range positions {
		m.positions[partition] = offset
	}
	if !outside(err) {
		say(m.name, "fault", err.Error())
	}
}

func outside(err error) bool {
	for _, each := range []error{kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.RebalanceInProgress,
		kerr.StaleMemberEpoch, kerr.FencedMemberEpoch} {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

func keys(owned map[int32]bool) []int32 {
	var found []int32
	for partition := range owned {
		found = append(found, partition)
	}
	return found
}

func (m *member) assigned(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, partition := range partitions[topic] {
		m.owned[partition] = true
	}
	say(m.name, "assigned", listed(partitions[topic]))
}

func (m *member) revoked(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.giveUp("revoked", partitions[topic])
}

func (m *member) lost(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
	m.giveUp("lost", partitions[topic])
}

func (m *member) giveUp(what string, partitions []int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if len(partitions) == 0 {
		return
	}
	var why []string
	if positions := m.taken(partitions); what == "revoked" {
		if err := m.commit(positions); err != nil {
			what, why = "lost", []string{err.Error()}
			if !outside(err) {
				say(m.name, "fault", err.Error())
			}
		}
	}
	for _, partition := range partitions {
		delete(m.owned, partition)
	}
	say(m.name, what, append([]string{listed(partitions)}, why...)...)
}

// watchTurns says when this process got no turn for long.
func watchTurns() {
	for {
		before := nanotime()
		time.Sleep(turn)
		if waited := time.Duration(nanotime()-before) - turn; waited > late {
			say("-", "stalled", fmt.Sprintf("%.3f", waited.Seconds()))
		}
	}
}

func main() {
	address, topic, group = os.Args[1], os.Args[2], os.Args[3]
	for _, option := range os.Args[4:] {
		name, value, _ := strings.Cut(option, "=")
		options[name] = value
	}
	go watchTurns()
	members := map[string]*member{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if words[0] == "stop" {
			break
		}
		name := words[1]
		switch words[0] {
		case "join":
			members[name] = join(name, strings.Join(words[2:], ""))
		case "leave":
			members[name].ending.Store(true)
		case "epoch":
			_, epoch := members[name].client.GroupMetadata()
			say(name, "epoch", fmt.Sprint(epoch))
		}
	}
	for _, each := range members {
		each.ending.Store(true)
	}
	for _, each := range members {
		<-each.done
	}
}
