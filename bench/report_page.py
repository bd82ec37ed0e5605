#!/usr/bin/env python3
"""Processor time, peak memory and size of `tycho report` for runs of 1,000 to 1,000,000 steps, and of `--watch` for what is added to them.

    bench/report_page.py [TYCHO] [STEPS ...]        needs only `tycho`
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/browser"))
from make_runs import write_run
from result_file import result_file


def used_by(command):
    """Runs a command; returns its processor time and peak memory."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{command} ended with {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def processor_s(pid):
    """Returns the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_page(page, before):
    while not page.exists() or page.stat().st_mtime_ns == before:
        time.sleep(0.02)
    return page.stat().st_mtime_ns


def watched(tycho, run, page):
    """Follows a run from which the last 100 steps were taken; returns processor seconds for all of it, and for those steps."""
    metrics = run / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join(lines[:-100]))
    watcher = subprocess.Popen([tycho, "report", run, "--watch", "--out", page], stdout=subprocess.DEVNULL)
    written = wait_for_page(page, 0)
    first = processor_s(watcher.pid)
    with metrics.open("ab") as file:
        file.write(b"".join(lines[-100:]))
    wait_for_page(page, written)
    again = processor_s(watcher.pid) - first
    watcher.send_signal(signal.SIGINT)
    watcher.wait()
    return first, again


def main():
    words = sys.argv[1:]
    tycho = os.path.abspath(words.pop(0)) if words and not words[0].isdigit() else os.path.abspath("build/cpu/bin/tycho")
    rows = []
    print(f"{'steps':>10} {'records':>9} {'page':>9} {'time':>8} {'memory':>9} {'watch, first':>13} {'100 more':>9}")
    with tempfile.TemporaryDirectory() as scratch:
        for steps in [int(word) for word in words] or [1_000, 100_000, 1_000_000]:
            run, page = Path(scratch) / f"run-{steps}", Path(scratch) / f"{steps}.html"
            write_run(str(run), steps, layers=12, texts=5)
            num_bytes = (run / "metrics.jsonl").stat().st_size
            seconds, memory_bytes = used_by([tycho, "report", run, "--out", page])
            page_bytes = page.stat().st_size
            page.unlink()
            first, again = watched(tycho, run, page)
            rows.append({"steps": steps, "records_bytes": num_bytes, "page_bytes": page_bytes, "time_s": seconds, "memory_bytes": memory_bytes,
                         "watch_first_s": first, "watch_again_s": again})
            print(f"{steps:>10} {num_bytes / 1e6:>6.1f} MB {page_bytes / 1e6:>6.2f} MB {seconds:>6.2f} s {memory_bytes / 1e6:>6.1f} MB {first:>11.2f} s {again:>7.2f} s", flush=True)
    result_file("report_page").write_text(json.dumps({"rows": rows}, indent=1))


main()
