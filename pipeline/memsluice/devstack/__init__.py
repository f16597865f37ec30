"""The local stack: a real Kafka broker and a real Weaviate as supervised child processes on loopback."""
