"""The Kafka runtime: ordinary stage objects on Faust, with what Faust loses in silence made impossible.

:func:`~memsluice.runtimes.kafka.apps.build_app` makes one Faust app of one stage,
:func:`~memsluice.runtimes.kafka.worker.run_worker` runs any subset of them in one process. Faust is imported by this
sub-package only; nothing here is imported by the stages.
"""

from memsluice.extras import require

require("The Kafka runtime", "gate")
