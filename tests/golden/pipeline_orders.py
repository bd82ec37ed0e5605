"""In which order PyTorch's pipeline schedules compute: GPipe, 1F1B and Interleaved1F1B.

Writes pipeline/orders.json: for each case {schedule, stages, micro_batches, chunks, orders}; `orders` has a text for each stage, in
which F1.3 is the forward pass of micro-batch 3 through the stage's chunk 1, and B the backward pass. GPipe and 1F1B run their
own step function on a stage that only writes down what it is asked for; Interleaved1F1B computes its table first.
Made with torch 2.11.0:
    python tests/golden/pipeline_orders.py
"""
import json
import pathlib
import types

from torch.distributed.pipelining import schedules

OUT = pathlib.Path(__file__).parent / "pipeline" / "orders.json"
PLAIN = [(1, 1), (1, 4), (2, 1), (2, 2), (2, 7), (3, 5), (4, 3), (4, 4), (4, 8), (4, 11), (5, 2), (8, 8), (8, 32)]
INTERLEAVED = [(2, 1, 2), (2, 4, 2), (2, 6, 3), (3, 4, 2), (3, 8, 4), (4, 3, 2), (4, 4, 2), (4, 8, 2), (4, 10, 3), (4, 16, 2), (8, 16, 3)]


class Recorder:
    """Stands for a stage: has no neighbours, and computes nothing."""

    has_backward = True

    def __init__(self, index, count):
        self.is_first, self.is_last = index == 0, index == count - 1
        self.stage_index, self.num_stages, self.ops = index, count, []

    def forward_one_chunk(self, micro_batch, *args, **kwargs):
        self.ops.append(f"F0.{micro_batch}")

    def backward_one_chunk(self, micro_batch, **kwargs):
        self.ops.append(f"B0.{micro_batch}")

    def __getattr__(self, name):
        return lambda *args, **kwargs: []


def plain(schedule, stages, micro_batches):
    orders = []
    for index in range(stages):
        stage = Recorder(index, stages)
        run = object.__new__(schedule)
        run._stage, run._num_stages, run._n_microbatches = stage, stages, micro_batches
        run._has_backward, run.scale_grads, run._stage_initialized = True, False, True
        run._initialize_stage = run._maybe_compute_loss = run._maybe_get_loss = run._update_losses = lambda *args, **kwargs: None
        run._step_microbatches([()] * micro_batches, [{}] * micro_batches)
        orders.append(" ".join(stage.ops))
    return orders


def interleaved(stages, micro_batches, chunks):
    rounds = max(1, micro_batches // stages)
    assert micro_batches % rounds == 0, "torch refuses such a number"
    given = types.SimpleNamespace(pp_group_size=stages, n_local_stages=chunks, _n_microbatches=micro_batches, number_of_rounds=rounds,
                                  microbatches_per_round=micro_batches // rounds)
    orders = []
    for rank in range(stages):
        ops = schedules.ScheduleInterleaved1F1B._calculate_single_rank_operations(given, rank)
        kinds = {schedules.FORWARD: "F", schedules.FULL_BACKWARD: "B"}
        orders.append(" ".join(f"{kinds[op.computation_type]}{op.stage_index // stages}.{op.microbatch_index}"
                               for op in ops if op is not None and op.computation_type in kinds))
    return orders


def main():
    cases = []
    for name, schedule in [("gpipe", schedules.ScheduleGPipe), ("1f1b", schedules.Schedule1F1B)]:
        cases += [(name, p, m, 1, plain(schedule, p, m)) for p, m in PLAIN]
    cases += [("interleaved", p, m, v, interleaved(p, m, v)) for p, m, v in INTERLEAVED]
    keys = ("schedule", "stages", "micro_batches", "chunks", "orders")
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("[\n" + ",\n".join(json.dumps(dict(zip(keys, case))) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
