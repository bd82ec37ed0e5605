"""The order of an epoch by mosaicml-streaming: its shuffle alone, without what deals it to ranks.

    python bench/peers/streaming_order.py ALGO SAMPLES [--hash]    CPU seconds, peak KiB, and the order's checksum
"""
import resource
import sys
import time

import numpy as np
import xxhash
from streaming.base.shuffle import get_shuffle

algo, samples = sys.argv[1], int(sys.argv[2])
sizes = [8180] * (samples // 8180) + [samples % 8180] * (samples % 8180 > 0)
start = time.process_time()
ids = get_shuffle(algo, np.array(sizes), 1, 9176, 1, 4_000_000)
seconds = time.process_time() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
digest = xxhash.xxh3_128(ids.astype("<u4").tobytes()).hexdigest() if "--hash" in sys.argv else "-"
print(seconds, peak, digest)
