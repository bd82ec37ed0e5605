"""Whether two sides that begin with the same weights and see the same data have the same losses."""

import math

# How far losses may be apart at each of the first steps; later, rounding has grown.
LOSS_LIMITS = {"fp32": 1e-3, "bf16": 2e-2}
COMPARED_STEPS = 20


def judge(precision, ours, theirs):
    """{"void": whether the losses part, "step": where they are farthest apart, ...} of two lists of losses by step."""
    pairs = list(zip(ours, theirs))[:COMPARED_STEPS]
    # A loss that is no number is as far off as can be, and must not pass for a small difference.
    gaps = [(gap if math.isfinite(gap) else math.inf, step, a, b) for step, (a, b) in enumerate(pairs, 1) for gap in [abs(a - b)]]
    gap, step, ours, theirs = max(gaps) if gaps else (math.inf, 0, math.nan, math.nan)
    limit = LOSS_LIMITS[precision]
    return {"void": gap > limit, "step": step, "tycho": ours, "peer": theirs, "gap": gap, "limit": limit}
