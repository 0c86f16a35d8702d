// Consumer groups with franz-go: partitions are shared and handed over, commits outlive the consumer. The same checks as
// in java/Groups.java.
package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const groupPartitions = 4

func protocols() map[string][]kgo.Opt {
	return map[string][]kgo.Opt{
		"eager":       {kgo.Balancers(kgo.RangeBalancer())},
		"cooperative": {kgo.Balancers(kgo.CooperativeStickyBalancer())},
		"consumer":    {kgo.Balancers(kgo.StickyBalancer()), kgo.ServerSideBalancer()},
	}
}

func groups(ctx context.Context) {
	for _, name := range []string{"eager", "cooperative", "consumer"} {
		topic := create(ctx, name, groupPartitions, nil)
		rebalance(ctx, name, topic)
		commits(ctx, name, topic)
	}
}

func rebalance(ctx context.Context, name, topic string) {
	group := topic + "-rebalance"
	first := join(ctx, name, topic, group)
	first.waitFor(ctx, groupPartitions)
	second := join(ctx, name, topic, group)
	await(ctx, "both to have two", func() bool { return first.count() == 2 && second.count() == 2 })
	apart := true
	for _, partition := range first.partitions() {
		apart = apart && !slices.Contains(second.partitions(), partition)
	}
	revoked := first.revokedCount()
	listing := kmsg.NewPtrListGroupsRequest()
	kind := ""
	for _, listed := range must(listing.RequestWith(ctx, first.client)).Groups {
		if listed.Group == group {
			kind = listed.GroupType
		}
	}
	second.close()
	first.waitFor(ctx, groupPartitions)
	first.close()
	say("rebalance-"+name, map[string]any{"shared": true, "apart": apart, "revoked": revoked, "type": kind})
}

func commits(ctx context.Context, name, topic string) {
	records := []*kgo.Record{}
	for n := range 40 {
		records = append(records, &kgo.Record{Topic: topic, Partition: int32(n % groupPartitions), Value: fmt.Appendf(nil, "%d", n)})
	}
	produce(ctx, records, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	found := map[string]int{}
	lives := 0
	for ; len(found) < 40 && lives < 10; lives++ { // each life reads a little, and commits what it has read
		options := append(protocols()[name], kgo.ConsumerGroup(topic+"-commits"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		client := open(options...)
		for wanted := min(40, len(found)+8); len(found) < wanted; {
			fetches := client.PollRecords(ctx, 7)
			check(fetches.Err())
			for _, record := range fetches.Records() {
				found[string(record.Value)]++
			}
			check(client.CommitRecords(ctx, fetches.Records()...))
		}
		check(client.LeaveGroupContext(ctx))
		client.Close()
	}
	once := true
	for _, times := range found {
		once = once && times == 1
	}
	committed := int64(0)
	for _, offset := range must(admin.FetchOffsets(ctx, topic+"-commits")).Sorted() {
		committed += offset.At
	}
	say("commits-"+name, map[string]any{"count": len(found), "once": once, "lives": lives > 2, "committed": committed})
}

// A member polls until it is closed.
type member struct {
	client  *kgo.Client
	cancel  context.CancelFunc
	done    chan struct{}
	guard   sync.Mutex
	held    map[int32]bool
	revoked int
}

func join(ctx context.Context, name, topic, group string) *member {
	found := &member{held: map[int32]bool{}, done: make(chan struct{})}
	ctx, found.cancel = context.WithCancel(ctx)
	lost := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		found.guard.Lock()
		defer found.guard.Unlock()
		for _, partition := range partitions[topic] {
			delete(found.held, partition)
			found.revoked++
		}
	}
	assigned := func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		found.guard.Lock()
		defer found.guard.Unlock()
		for _, partition := range partitions[topic] {
			found.held[partition] = true
		}
	}
	options := append(protocols()[name], kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsAssigned(assigned), kgo.OnPartitionsRevoked(lost), kgo.OnPartitionsLost(lost))
	found.client = open(options...)
	go func() {
		defer close(found.done)
		for ctx.Err() == nil {
			found.client.PollFetches(ctx)
		}
	}()
	return found
}

func (m *member) close() {
	m.cancel()
	<-m.done
	m.client.Close()
}

func (m *member) waitFor(ctx context.Context, count int) {
	await(ctx, fmt.Sprint(count, " partitions"), func() bool { return m.count() == count })
}

func (m *member) count() int { return len(m.partitions()) }

func (m *member) partitions() []int32 {
	m.guard.Lock()
	defer m.guard.Unlock()
	found := []int32{}
	for partition := range m.held {
		found = append(found, partition)
	}
	return found
}

func (m *member) revokedCount() int {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.revoked
}

func await(ctx context.Context, what string, condition func() bool) {
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			panic("waited for " + what)
		}
	}
}
