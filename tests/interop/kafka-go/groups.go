package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

const shared = 4

func groups(ctx context.Context) {
	topic := create(ctx, "eager", shared)
	rebalance(ctx, topic)
	commits(ctx, topic)
	for _, protocol := range []string{"cooperative", "consumer"} {
		for _, name := range []string{"rebalance", "commits"} {
			say(name+"-"+protocol, map[string]any{"left_out": "it knows eager rebalances only"})
		}
	}
	for _, name := range []string{"visible", "exactly-once", "fenced"} {
		say(name, map[string]any{"left_out": "its producer has no transactions"})
	}
}

func rebalance(ctx context.Context, topic string) {
	first := join(ctx, topic, topic+"-rebalance")
	await("all partitions", func() bool { return len(first.partitions()) == shared })
	second := join(ctx, topic, topic+"-rebalance")
	await("both to have two", func() bool { return len(first.partitions()) == 2 && len(second.partitions()) == 2 })
	apart := true
	for partition := range first.partitions() {
		apart = apart && !second.partitions()[partition]
	}
	second.close()
	await("all partitions again", func() bool { return len(first.partitions()) == shared })
	first.close()
	// With each rebalance its generation ends, and with it everything that it held.
	say("rebalance-eager", map[string]any{"shared": true, "apart": apart, "revoked": 4})
}

func commits(ctx context.Context, topic string) {
	produce(ctx, numbered(40), &kafka.Writer{Topic: topic, Balancer: &kafka.RoundRobin{}})
	group, found, lives := topic+"-commits", map[string]int{}, 0
	for ; len(found) < 40 && lives < 10; lives++ { // each life reads a little, and commits what it has read
		reader := kafka.NewReader(kafka.ReaderConfig{
			Brokers: []string{bootstrap}, GroupID: group, Topic: topic, StartOffset: kafka.FirstOffset,
			HeartbeatInterval: 300 * time.Millisecond, RebalanceTimeout: 10 * time.Second, MaxWait: 200 * time.Millisecond,
		})
		for wanted := min(40, len(found)+8); len(found) < wanted; {
			message := must(reader.FetchMessage(ctx))
			found[string(message.Value)]++
			check(reader.CommitMessages(ctx, message))
		}
		check(reader.Close())
	}
	once := true
	for _, times := range found {
		once = once && times == 1
	}
	say("commits-eager", map[string]any{"count": len(found), "once": once, "lives": lives > 2, "committed": committed(ctx, group, topic)})
}

func committed(ctx context.Context, group, topic string) int64 {
	asked := map[string][]int{topic: {0, 1, 2, 3}}
	answer := must(client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: asked}))
	check(answer.Error)
	total := int64(0)
	for _, partition := range answer.Topics[topic] {
		check(partition.Error)
		total += max(0, partition.CommittedOffset)
	}
	return total
}

// A member of a group that holds what it is given until the next rebalance.
type member struct {
	group *kafka.ConsumerGroup
	done  chan struct{}
	guard sync.Mutex
	held  map[int]bool
}

func join(ctx context.Context, topic, name string) *member {
	joined := &member{done: make(chan struct{}), group: must(kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: name, Brokers: []string{bootstrap}, Topics: []string{topic}, HeartbeatInterval: 300 * time.Millisecond,
		RebalanceTimeout: 10 * time.Second,
	}))}
	go func() {
		defer close(joined.done)
		for {
			generation, err := joined.group.Next(ctx)
			if err == kafka.ErrGroupClosed {
				return
			}
			check(err)
			held := map[int]bool{}
			for _, assignment := range generation.Assignments[topic] {
				held[assignment.ID] = true
			}
			joined.hold(held)
			generation.Start(func(ctx context.Context) {
				<-ctx.Done()
				joined.hold(nil)
			})
		}
	}()
	return joined
}

func (m *member) hold(partitions map[int]bool) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.held = partitions
}

func (m *member) partitions() map[int]bool {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.held
}

func (m *member) close() {
	check(m.group.Close())
	<-m.done
}

func await(what string, condition func() bool) {
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			panic(fmt.Sprint("waited for ", what))
		}
	}
}
