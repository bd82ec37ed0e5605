"""Two runs of one thread each that go on by turns on one core, for measurements on a machine that others use, too."""

import json
import os
import pathlib
import random
import signal
import statistics
import subprocess
import time


class Run:
    """A run of `recipe` in the working folder."""

    def __init__(self, tycho, recipe, name, arguments=(), environment=None, num_warm_steps=50):
        self.folder, self.num_warm_steps = pathlib.Path("runs") / name, num_warm_steps
        self.process = subprocess.Popen([tycho, "run", recipe, f"run_name={name}", *arguments], env=dict(os.environ, **(environment or {})),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def lines(self, file):
        """The records of a file of the run folder, but for the last, which may be cut."""
        path = self.folder / file
        return [json.loads(line) for line in path.read_text().splitlines()[:-1]] if path.exists() else []

    def steps(self):
        """Begins and ends of its steps, in seconds of the clock."""
        return [(line["time"] - line["step_s"], line["time"]) for line in self.lines("metrics.jsonl")[self.num_warm_steps:]]

    def train(self, slice_s):
        """Trains for a slice of time, and says when that was."""
        began = time.time()
        self.process.send_signal(signal.SIGCONT)
        time.sleep(slice_s)
        self.process.send_signal(signal.SIGSTOP)
        return began, time.time()

    def cpu_s(self):
        """Processor time of the thread that trains, and of all others."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task")
        by_thread = {int(task.name): int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks.iterdir()}
        trains = by_thread.pop(self.process.pid)
        return trains, sum(by_thread.values())

    def end(self):
        """How long it takes."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return time.monotonic() - began


def medians(steps, slices):
    """The median step of each slice, None where it has no whole step."""
    found, at = [], 0
    for began, ended in slices:
        inside = []
        while at < len(steps) and steps[at][1] <= ended:
            if steps[at][0] >= began:
                inside.append(steps[at][1] - steps[at][0])
            at += 1
        found.append(statistics.median(inside) if inside else None)
    return found


def by_turns(runs, seconds, slice_s):
    """Lets two runs, the one with what is measured first, train by turns in random order, and leaves them stopped."""
    core = max(os.sched_getaffinity(0))
    for run in runs:
        while not run.steps():
            time.sleep(0.1)
        os.sched_setaffinity(run.process.pid, {core})  # the thread that trains alone
        run.process.send_signal(signal.SIGSTOP)
    time.sleep(slice_s)
    slices, before, num_before = [[], []], [run.cpu_s() for run in runs], [len(run.steps()) for run in runs]
    for _ in range(int(seconds / 2 / slice_s)):
        for which in random.sample([0, 1], 2):
            slices[which].append(runs[which].train(slice_s))
    time.sleep(slice_s)
    after, steps = [run.cpu_s() for run in runs], [run.steps() for run in runs]
    pairs = [pair for pair in zip(*map(medians, steps, slices)) if None not in pair]
    trains, others = ([then[i] - now[i] for now, then in zip(before, after)] for i in range(2))
    num_steps = [len(own) - num for own, num in zip(steps, num_before)]
    per_step = [taken / num for taken, num in zip(trains, num_steps)]
    return {"ratio": statistics.median(one / other for one, other in pairs), "trains": per_step[0] / per_step[1],
            "share": others[0] / trains[0], "share_without": others[1] / trains[1], "cpu_ms": 1000 * per_step[0], "pairs": len(pairs), "steps": num_steps[0]}


def end_all(runs):
    for run in runs:
        run.process.kill()
        run.process.wait()


def spread(rounds, name):
    """A median over rounds, and their range."""
    values = [one[name] for one in rounds]
    return f"{statistics.median(values):.4f} ({min(values):.3f}-{max(values):.3f})"


def drawn(rounds, name):
    """A median over rounds, and where 95 of 100 medians of rounds drawn from them lie."""
    values = [one[name] for one in rounds]
    medians_of_draws = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(4000))
    return statistics.median(values), medians_of_draws[100], medians_of_draws[-101]
