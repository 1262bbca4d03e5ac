"""Generated jobs in which nothing varies, so that times can be worked by hand. In: nothing. Out: scenarios."""

from traceforge.synth.cluster import Cluster
from traceforge.synth.load import Noise
from traceforge.synth.pipeline import Pipeline
from traceforge.synth.program import Workload
from traceforge.synth.scenario import Scenario

QUIET = Noise(kernel=0, iteration=0, device=0, host=0, transfer=0, end_skew_ns=0)

BARE = Scenario(
    iterations=3,
    cluster=Cluster(1, 4, pipeline_parallel=4),
    workload=Workload(layers=8, optimizer_ns=0, copy_ns=0, host_ns=10_000, input_ns=0),
    noise=QUIET,
    pipeline=Pipeline(message_bytes=0),
)
"""One replica of a pipeline of four stages: no gradients, no optimizer, messages of no length."""
