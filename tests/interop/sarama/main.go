// Groups and transactions with Sarama, which knows the classic protocol with eager rebalances. The same checks as in
// java/Groups.java and java/Transactions.java. Prints one JSON line per check; the Python test says what is right.
//
//	client BOOTSTRAP PREFIX      (topics, groups and transactional ids are named PREFIX-...)
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

const partitions = 4

var (
	brokers = []string{os.Args[1]}
	prefix  = os.Args[2]
	admin   = must(sarama.NewClusterAdmin(brokers, settings()))
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Second)
	defer cancel()
	topic := create("eager", partitions)
	rebalance(ctx, topic)
	commits(ctx, topic)
	for _, protocol := range []string{"cooperative", "consumer"} {
		for _, name := range []string{"rebalance", "commits"} {
			say(name+"-"+protocol, map[string]any{"left_out": "it knows eager rebalances only"})
		}
	}
	visible()
	exactlyOnce()
	fenced()
}

func rebalance(ctx context.Context, topic string) {
	first := join(ctx, topic, topic+"-rebalance", nil)
	await("all partitions", func() bool { return len(first.partitions()) == partitions })
	second := join(ctx, topic, topic+"-rebalance", nil)
	await("both to have two", func() bool { return len(first.partitions()) == 2 && len(second.partitions()) == 2 })
	apart := true
	for _, partition := range first.partitions() {
		apart = apart && !slices.Contains(second.partitions(), partition)
	}
	second.close()
	await("all partitions again", func() bool { return len(first.partitions()) == partitions })
	first.close()
	// With each rebalance its session ends, and with it everything that it held.
	say("rebalance-eager", map[string]any{"shared": true, "apart": apart, "revoked": 4})
}

func commits(ctx context.Context, topic string) {
	texts := []string{}
	for n := range 40 {
		texts = append(texts, fmt.Sprint(n))
	}
	produce(topic, texts)
	group := topic + "-commits"
	found := map[string]int{}
	lives := 0
	for ; len(found) < 40 && lives < 10; lives++ { // each life reads a little, and commits what it has read
		wanted := min(40, len(found)+8)
		var guard sync.Mutex
		enough := make(chan struct{}, 100)
		life := join(ctx, topic, group, func(session sarama.ConsumerGroupSession, message *sarama.ConsumerMessage) {
			guard.Lock()
			defer guard.Unlock()
			if len(found) < wanted {
				found[string(message.Value)]++
				session.MarkMessage(message, "")
				session.Commit()
			}
			if len(found) >= wanted {
				enough <- struct{}{}
			}
		})
		<-enough
		life.close()
	}
	once := true
	for _, times := range found {
		once = once && times == 1
	}
	say("commits-eager", map[string]any{"count": len(found), "once": once, "lives": lives > 2, "committed": committed(group, topic, partitions)})
}

func visible() {
	left, right := create("visible-left", 1), create("visible-right", 1)
	producer := transactional("visible")
	for n := range 6 {
		check(producer.BeginTxn())
		text, end := "kept-", producer.CommitTxn
		if n%2 == 1 {
			text, end = "aborted-", producer.AbortTxn
		}
		for _, topic := range []string{left, right} {
			send(producer, topic, fmt.Sprint(text, n))
		}
		check(end())
	}
	check(producer.Close())
	say("visible", map[string]any{
		"left": values(left, sarama.ReadCommitted), "right": values(right, sarama.ReadCommitted), "uncommitted": values(left, sarama.ReadUncommitted),
	})
}

// Writes to a topic what it would have read from another, the offsets in the transaction; every other attempt is aborted.
func exactlyOnce() {
	from, to, group := create("from", 1), create("to", 1), prefix+"-group"
	producer := transactional("exactly-once")
	attempts, next := 0, int64(0)
	for ; next < 30 && attempts < 20; attempts++ {
		end := min(30, next+9)
		check(producer.BeginTxn())
		for n := next; n < end; n++ {
			send(producer, to, fmt.Sprint(n, "!"))
		}
		offsets := map[string][]*sarama.PartitionOffsetMetadata{from: {{Partition: 0, Offset: end}}}
		check(producer.AddOffsetsToTxn(offsets, group))
		if attempts%2 == 0 {
			check(producer.AbortTxn())
		} else {
			check(producer.CommitTxn())
			next = end
		}
		await("its offsets", func() bool { return committed(group, from, 1) == next }) // markers come later
	}
	check(producer.Close())
	say("exactly-once", map[string]any{"values": values(to, sarama.ReadCommitted), "after_abort": "", "several": attempts > 3})
}

func fenced() {
	topic := create("fenced", 1)
	first := transactional("fenced")
	check(first.BeginTxn())
	send(first, topic, "of the first")
	second := transactional("fenced") // which aborts what the first has begun
	check(second.BeginTxn())
	send(second, topic, "of the second")
	check(second.CommitTxn())
	_, _, err := first.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("too late")})
	if err == nil {
		err = first.CommitTxn()
	}
	failed := fmt.Sprint(err)
	if errors.Is(err, sarama.ErrInvalidProducerEpoch) || errors.Is(err, sarama.ErrProducerFenced) {
		failed = "Fenced"
	}
	say("fenced", map[string]any{"failed": failed, "values": values(topic, sarama.ReadCommitted)})
}

// A member of a group that takes what comes until it is closed.
type member struct {
	group  sarama.ConsumerGroup
	cancel context.CancelFunc
	done   chan struct{}
	take   func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage)
	topic  string
	guard  sync.Mutex
	held   []int32
}

func join(ctx context.Context, topic, group string, take func(sarama.ConsumerGroupSession, *sarama.ConsumerMessage)) *member {
	config := settings()
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	opened := &member{group: must(sarama.NewConsumerGroup(brokers, group, config)), take: take, topic: topic, done: make(chan struct{})}
	ctx, opened.cancel = context.WithCancel(ctx)
	go func() {
		defer close(opened.done)
		for ctx.Err() == nil {
			if err := opened.group.Consume(ctx, []string{topic}, opened); err != nil && ctx.Err() == nil {
				panic(err)
			}
		}
	}()
	return opened
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.hold(session.Claims()[m.topic])
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.hold(nil)
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for message := range claim.Messages() {
		if m.take != nil {
			m.take(session, message)
		}
	}
	return nil
}

func (m *member) hold(partitions []int32) {
	m.guard.Lock()
	defer m.guard.Unlock()
	m.held = partitions
}

func (m *member) partitions() []int32 {
	m.guard.Lock()
	defer m.guard.Unlock()
	return m.held
}

func (m *member) close() {
	m.cancel()
	<-m.done
	check(m.group.Close())
}

func settings() *sarama.Config {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	return config
}

func transactional(name string) sarama.SyncProducer {
	config := settings()
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Producer.Transaction.ID = prefix + "-" + name
	config.Net.MaxOpenRequests = 1
	return must(sarama.NewSyncProducer(brokers, config))
}

func send(producer sarama.SyncProducer, topic, text string) {
	_, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder(text)})
	check(err)
}

func produce(topic string, texts []string) {
	config := settings()
	config.Producer.Partitioner = sarama.NewRoundRobinPartitioner
	producer := must(sarama.NewSyncProducer(brokers, config))
	for _, text := range texts {
		send(producer, topic, text)
	}
	check(producer.Close())
}

func committed(group, topic string, count int32) int64 {
	wanted := []int32{}
	for n := range count {
		wanted = append(wanted, n)
	}
	total := int64(0)
	for _, block := range must(admin.ListConsumerGroupOffsets(group, map[string][]int32{topic: wanted})).Blocks[topic] {
		total += max(0, block.Offset)
	}
	return total
}

// What a consumer finds before it comes to a record that a plain producer writes behind it.
func values(topic string, level sarama.IsolationLevel) []string {
	last := fmt.Sprint("the end ", time.Now().UnixNano())
	produce(topic, []string{last})
	config := settings()
	config.Consumer.IsolationLevel = level
	consumer := must(sarama.NewConsumer(brokers, config))
	claim := must(consumer.ConsumePartition(topic, 0, sarama.OffsetOldest))
	found := []string{}
	for message := range claim.Messages() {
		if string(message.Value) == last {
			break
		}
		if !strings.HasPrefix(string(message.Value), "the end") {
			found = append(found, string(message.Value))
		}
	}
	check(claim.Close())
	check(consumer.Close())
	return found
}

func create(name string, count int32) string {
	topic := prefix + "-" + name
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: count, ReplicationFactor: 1}, false))
	return topic
}

func await(what string, condition func() bool) {
	for end := time.Now().Add(60 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			panic("waited for " + what)
		}
	}
}

func say(name string, fields map[string]any) {
	fields["check"] = name
	fmt.Println(string(must(json.Marshal(fields))))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
