#!/bin/bash
# Start the broker of docker-compose.yml: write its configuration, format the data at the first start with the SCRAM
# users, and become the broker. Passwords come from the environment and are on no command line.
set -euo pipefail
umask 077

: "${KAFKA_HOME:=/opt/kafka}" "${DATA:=/var/lib/kafka/data}" "${KAFKA_PORT:=9092}" "${BIND:=0.0.0.0}" "${INSIDE_HOST:=kafka}"
config="$(mktemp -d)"
scram=org.apache.kafka.common.security.scram.ScramLoginModule
plain=org.apache.kafka.common.security.plain.PlainLoginModule

# CLIENTS is what the host reaches, INSIDE what the other containers reach; BROKER is how the broker reaches itself,
# whatever port the host maps.
cat > "$config/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=127.0.0.1:9094
listeners=CLIENTS://$BIND:9092,INSIDE://$BIND:9095,BROKER://127.0.0.1:9093,CONTROLLER://127.0.0.1:9094
advertised.listeners=CLIENTS://127.0.0.1:$KAFKA_PORT,INSIDE://$INSIDE_HOST:9095,BROKER://127.0.0.1:9093,CONTROLLER://127.0.0.1:9094
controller.listener.names=CONTROLLER
inter.broker.listener.name=BROKER
listener.security.protocol.map=CLIENTS:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT,BROKER:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT
sasl.enabled.mechanisms=SCRAM-SHA-512
sasl.mechanism.inter.broker.protocol=SCRAM-SHA-512
sasl.mechanism.controller.protocol=PLAIN
listener.name.controller.sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config=$plain required username="admin" password="$PASSWORD_ADMIN" user_admin="$PASSWORD_ADMIN";
listener.name.broker.scram-sha-512.sasl.jaas.config=$scram required username="admin" password="$PASSWORD_ADMIN";
listener.name.clients.scram-sha-512.sasl.jaas.config=$scram required;
listener.name.inside.scram-sha-512.sasl.jaas.config=$scram required;
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin
allow.everyone.if.no.acl.found=false
auto.create.topics.enable=false
delete.topic.enable=true
log.dirs=$DATA
num.partitions=1
default.replication.factor=1
min.insync.replicas=1
offsets.topic.num.partitions=8
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
log.cleaner.threads=1
log.cleaner.dedupe.buffer.size=33554432
num.network.threads=2
num.io.threads=4
num.recovery.threads.per.data.dir=2
PROPERTIES

if [ ! -e "$DATA/meta.properties" ]; then
  {
    printf '%s\n' format --standalone -t "$CLUSTER_ID" -c "$config/server.properties"
    for user in admin seal screen land producer reader runtime operator verdicts; do
      variable="PASSWORD_${user^^}"
      printf '%s\n' --add-scram "SCRAM-SHA-512=[name=$user,password=${!variable}]"
    done
  } > "$config/format"
  "$KAFKA_HOME/bin/kafka-storage.sh" "@$config/format"
  rm "$config/format"
fi
exec "$KAFKA_HOME/bin/kafka-server-start.sh" "$config/server.properties"
