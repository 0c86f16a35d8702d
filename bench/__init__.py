"""Side-by-side benchmarks of Penstock, Apache Kafka and librdkafka's mock broker: `python -m bench`, see README.md."""
