"""Text to MDS with LLM Foundry's own convert_text_to_mds.py, one process.

    python bench/peers/foundry_convert.py FOLDER TOKENIZER OUT CONCAT_TOKENS EOS_TEXT    JSON: seconds, CPU seconds

The clock starts when its modules are loaded. Runs in the environment of tests/golden/make_conversion_goldens.py, which also says
what is left out of LLM Foundry: object stores, and nothing that a conversion of local files does.
"""
import functools
import json
import pathlib
import resource
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/golden"))
from make_conversion_goldens import converters


def cpu_s():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    folder, tokenizer, out, concat_tokens, eos_text = sys.argv[1:]
    text, _ = converters()
    import transformers  # and the classes that it loads late
    transformers.AutoTokenizer, transformers.PreTrainedTokenizerFast
    unsorted = text.get_object_names
    text.get_object_names = functools.wraps(unsorted)(lambda folder: sorted(unsorted(folder)))
    start, start_cpu = time.perf_counter(), cpu_s()
    text.convert_text_to_mds_from_args(
        output_folder=out, input_folder=folder, concat_tokens=int(concat_tokens), eos_text=eos_text, bos_text=None, no_wrap=False,
        compression="", processes=1, tokenizer_name=tokenizer, reprocess=True, trust_remote_code=False, logging_level="ERROR",
        use_tokenizer_eos=False)
    print(json.dumps({"seconds": time.perf_counter() - start, "cpu_s": cpu_s() - start_cpu}))


main()
