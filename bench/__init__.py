"""Side-by-side benchmarks of Headpond, Apache Kafka and librdkafka's mock broker: `python -m bench`, see README.md."""
