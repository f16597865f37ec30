"""The whole pipeline in one process under one seeded scheduler: the real stages and the real Kafka runtime's lanes,
over a simulated broker, disk, store and time.

:mod:`.loop` is a process's event loop, stepped from outside; :mod:`.broker` the log and its transactions;
:mod:`.producers` and :mod:`.consumer` stand for aiokafka and Faust; :mod:`.rocks` for RocksDB; :mod:`.sink` for the
vector store; :mod:`.worker` is one process of a stage; :mod:`.world` has keys, policies and clocks; :mod:`.workload`
draws events; :mod:`.history` runs one seed; :mod:`.judge` says what was broken; :mod:`.planted` breaks it on purpose;
:mod:`.campaign` runs many seeds.

What is simulated keeps Kafka's promises and no more: whatever it is free to do late, twice or in another order, the
scheduler has it do so.
"""
