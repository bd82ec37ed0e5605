"""Where benchmarks leave every number behind their tables: in the build folder, which is not committed."""

import pathlib

BENCH = pathlib.Path(__file__).resolve().parent


def result_file(name):
    """build/bench/NAME.json of this checkout, as a path; its folder is made."""
    path = BENCH.parent / "build" / "bench" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
