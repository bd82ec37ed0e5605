# Writes run folders as `tycho run` would: noisy losses of any length, spikes, values that are not finite, resumes, odd names.
import json
import math
import os
import random


def write_run(folder, steps, *, seed=0, scale=1.0, every=1, layers=0, resume_at=0, odd_names=False, texts=0, lr=3e-4, ended=True):
    """Writes metrics.jsonl, events.jsonl and recipe.json of a run; returns the step and height of its largest spike."""
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(seed)
    name = os.path.basename(folder)
    start = 1_790_000_000.0
    spike = steps * 6 // 10 // every * every
    with open(folder + "/events.jsonl", "w") as events, open(folder + "/metrics.jsonl", "w") as metrics:
        def event(time, attempt, step, kind, text="", facts=None):
            events.write(json.dumps({"time": time, "attempt": attempt, "step": step, "kind": kind, "text": text, "facts": facts or {}}) + "\n")

        def step_record(step, attempt, time):
            progress = step / steps
            loss = scale * (2.1 + 8.5 * math.exp(-step / (0.02 * steps + 5)) + 0.9 * (1 - progress) + rng.gauss(0, 0.06))
            if step == spike:
                loss += 3
            record = {"step": step, "attempt": attempt, "time": time, "tokens": step * 524288, "samples": step * 256, "epoch": 0,
                      "loss": round(loss, 5), "lr": lr * min(1, progress * 50) * (0.55 + 0.45 * math.cos(math.pi * progress)),
                      "grad_norm": round(abs(rng.gauss(0.8, 0.2)) + 5 * math.exp(-step / 30), 4), "step_s": round(0.41 + abs(rng.gauss(0, 0.01)), 4),
                      "data_wait_s": round(abs(rng.gauss(0, 0.002)), 5), "tokens_per_s": round(524288 / 0.41 * rng.gauss(1, 0.01)),
                      "tflops": round(rng.gauss(410, 5), 2), "mfu": round(rng.gauss(0.412, 0.005), 4), "memory_bytes": 61 * 2**30, "eta_s": round((steps - step) * 0.41, 1)}
            if step == spike + 2 * every:
                record["loss"], record["not_finite"] = None, {"loss": "inf"}
            metrics.write(json.dumps(record) + "\n")

        def others(step, attempt, time):
            def one(name, value):
                metrics.write(json.dumps({"step": step, "attempt": attempt, "time": time, name: value}) + "\n")
            for layer in range(layers):
                one(f"grad_norm/layer{layer}", round(abs(rng.gauss(0.3 + layer * 0.02, 0.05)), 4))
                one(f"param_norm/layer{layer}", round(20 + layer + 3 * step / steps, 3))
            if odd_names:
                one("odd/</script><img src=x onerror=alert(1)>\"&'", rng.random())

        event(start, 1, 0, "run_start", facts={"run_name": name, "device": "NVIDIA H100 80GB HBM3", "num_ranks": 8, "num_params": 1_240_000_000, "total_steps": steps})
        attempt, step, time = 1, 0, start
        while step < steps:
            step += every
            time = time + 0.42 * every
            step_record(step, attempt, time)
            if step % max(every, steps // 20 // every * every) == 0:
                others(step, attempt, time)
                metrics.write(json.dumps({"step": step, "attempt": attempt, "time": time, "eval.loss": scale * (2.3 + 8 * math.exp(-step / (0.02 * steps + 5)) + 0.9 * (1 - step / steps))}) + "\n")
            if resume_at and attempt == 1 and step >= resume_at:
                attempt, step, time = 2, resume_at * 3 // 4 // every * every, time + 5000
                event(time, 2, step, "run_start", facts={"run_name": name, "device": "NVIDIA H100 80GB HBM3", "num_ranks": 8, "num_params": 1_240_000_000, "total_steps": steps, "first_step": step})
        for i in range(texts):
            at = steps * (i + 1) // texts
            for prompt in ("Once upon a time", "The capital of <France> is"):
                event(start + at, attempt, at, "text", f"{prompt}: sample", {"name": prompt, "text": f"{prompt} … sample number {i} of {name}, <b>not bold</b>.\nA second line."})
        if ended:
            event(time, attempt, steps, "run_end", "max_duration reached")
    with open(folder + "/recipe.json", "w") as file:
        json.dump({"run_name": name, "seed": seed, "seq_len": 2048, "precision": "bf16", "model": {"kind": "llama", "width": 2048},
                   "optimizer": {"kind": "adamw", "lr": lr, "weight_decay": 0.1}, "max_duration": f"{steps}ba"}, file)
    return spike
