"""The two runtimes that move the bytes: Faust on Kafka, and the embedded one; and how the stages are put together."""
