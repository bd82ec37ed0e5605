"""What LLM Foundry makes of in-context tasks: prompts, answers, scores and the gauntlet, on a tiny Llama that is trained here.

Writes beside itself: tasks/*.jsonl, model/ (config.json, model.safetensors, tokenizer.json, tokenizer_config.json),
tokenizer_bos.json (the same, which puts <|bos|> before every text), and
  prompts.json   for each case what LLM Foundry's data set classes give: the tokens of each sequence, and which of them are the answer;
                 for generation the prompt, the answers and how many tokens may be written
  results.json   for each case LLM Foundry's metrics, the log-likelihood of each answer, and what was generated (transformers, fp32)
  gauntlet.json  what EvalGauntlet makes of these metrics
  few_shot.json  which examples are shown, by get_fewshot_sample_idxs; answers.json: normalize_answer of odd texts
  harness.jsonl  requests as lm-evaluation-harness makes them, and what its HFLM answers

Made with llm-foundry 0.22.0, mosaicml 0.32.1, transformers 4.51.3, datasets 3.6.0 and lm-eval 0.4.8 in Python 3.11:
  pip install torch torchmetrics==1.5.2 datasets==3.6.0 mosaicml-streaming==0.12.0 torch_optimizer coolname py-cpuinfo tabulate
  pip install --no-deps llm-foundry==0.22.0 mosaicml==0.32.1 transformers==4.51.3 tokenizers==0.21.4 huggingface_hub==0.36.0 lm-eval==0.4.8
  OMP_NUM_THREADS=1 python tests/golden/icl/make_icl_goldens.py
"""
import json
import os
import pathlib
import random
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).parent
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_CACHE"] = tempfile.mkdtemp()


def without_the_rest():
    """LLM Foundry's packages would import data sets, loggers and the cloud: these names are folders and no more."""
    root = next(pathlib.Path(p) / "llmfoundry" for p in sys.path if (pathlib.Path(p) / "llmfoundry").is_dir())
    for name in ["llmfoundry", "llmfoundry.eval", "llmfoundry.eval.datasets", "llmfoundry.eval.metrics", "llmfoundry.utils",
                 "llmfoundry.callbacks"]:
        package = types.ModuleType(name)
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    sys.modules["llmfoundry"].registry = types.ModuleType("llmfoundry.registry")
    sys.modules["llmfoundry.registry"] = sys.modules["llmfoundry"].registry
    stub = types.ModuleType("llmfoundry.utils.registry_utils")
    stub.construct_from_registry = None
    sys.modules[stub.__name__] = stub


without_the_rest()
import torch  # noqa: E402
import transformers  # noqa: E402
from llmfoundry.callbacks.eval_gauntlet_callback import EvalGauntlet  # noqa: E402
from llmfoundry.eval.datasets import in_context_learning_evaluation as icl  # noqa: E402
from llmfoundry.eval.datasets.utils import get_fewshot_sample_idxs  # noqa: E402
from llmfoundry.eval.metrics import nlp  # noqa: E402
from tokenizers import Tokenizer, models, pre_tokenizers, decoders, processors, trainers  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402

MAX_SEQ_LEN, VOCAB = 96, 340
TYPES = {
    "language_modeling": (icl.InContextLearningLMTaskDataset, "InContextLearningLMAccuracy",
                          "InContextLearningLMExpectedCalibrationError"),
    "multiple_choice": (icl.InContextLearningMultipleChoiceTaskDataset, "InContextLearningMultipleChoiceAccuracy",
                        "InContextLearningMCExpectedCalibrationError"),
    "schema": (icl.InContextLearningSchemaTaskDataset, "InContextLearningMultipleChoiceAccuracy",
               "InContextLearningMCExpectedCalibrationError"),
    "generation_task_with_answers": (icl.InContextLearningGenerationTaskWithAnswersDataset,
                                     "InContextLearningGenerationExactMatchAccuracy", None),
}
# name -> file, type, few-shot counts, keyword arguments of LLM Foundry's data sets.
CASES = {
    "words": ("words", "language_modeling", [0, 2], {}),
    "words_asked": ("words", "language_modeling", [3], dict(
        prompt_string="Finish each line:  ", example_delimiter="\n\n", continuation_delimiter=" ->", prelimiter="Line: ",
        fewshot_random_seed=7)),
    "words_cut": ("words", "language_modeling", [9], dict(max_seq_len=40)),
    "colours": ("colours", "multiple_choice", [0, 1, 25], {}),
    "colours_asked": ("colours", "multiple_choice", [5], dict(
        prompt_string="Answer.\n", continuation_delimiter="\nAnswer: ", prelimiter="Question: ", example_delimiter="\n")),
    "pronouns": ("pronouns", "schema", [0, 2], {}),
    "pronouns_asked": ("pronouns", "schema", [1], dict(prompt_string="Read:", prelimiter="* ", continuation_delimiter=" - ")),
    "sums": ("sums", "generation_task_with_answers", [0, 3], {}),
    "sums_asked": ("sums", "generation_task_with_answers", [2], dict(
        prompt_string="Add.", prelimiter="Q: ", continuation_delimiter="\nA:", early_stopping_criteria=["\n", "Q:"])),
    "steps": ("steps", "generation_task_with_answers", [1], dict(
        cot_delimiter=" #### ", continuation_delimiter=" => ", early_stopping_criteria=["\n\n"], do_normalization=False)),
}
WORDS = ["red", "green", "blue", "black", "white", "grey"]
THINGS = ["grass", "the sky", "snow", "coal", "blood", "an elephant", "a leaf", "milk", "night", "fire"]
COLOUR_OF = [1, 2, 4, 3, 0, 5, 1, 4, 3, 0]


def tasks():
    rng = random.Random(3)
    nouns = ["cat", "dog", "fox", "cow", "hen", "owl", "bee", "ant"]
    verbs = ["sleeps", "runs", "sings", "eats", "hides", "flies"]
    words = [dict(context=f"  the {n} that {v} now {w}, and later the {n} ", continuation=f" {w}" if i % 3 == 0 else w)
             for i, (n, v, w) in enumerate((rng.choice(nouns), rng.choice(verbs), rng.choice(verbs)) for _ in range(23))]
    words.append(dict(context="naïve café\u00a0", continuation="d\u00e9j\u00e0 vu \u2003"))
    colours = []
    for i in range(30):
        k = i % len(THINGS)
        wrong = rng.sample([w for j, w in enumerate(WORDS) if j != COLOUR_OF[k]], 3)
        gold = rng.randrange(4)
        choices = wrong[:gold] + [WORDS[COLOUR_OF[k]]] + wrong[gold:]
        colours.append(dict(query=f"The colour of {THINGS[k]} is" + (" " if i % 5 == 0 else ""), choices=choices, gold=gold,
                            category=["nature", "things", "Ähnliches"][i % 3]))
    pronouns = []
    for i in range(9):
        a, b = rng.sample(nouns, 2)
        pronouns.append(dict(context_options=[f"The {a} saw the {b} because the {a}", f"The {a} saw the {b} because the {b}"],
                             continuation=f"was {rng.choice(['small', 'near'])}.", gold=i % 2))
    sums, steps = [], []
    for i in range(14):
        x, y = rng.randrange(6), rng.randrange(5)
        sums.append(dict(context=f"{x} + {y} =", answer=f"{x + y}" + (" " if i % 4 == 0 else ""), aliases=[f"The {x + y}.", f"{x + y}_!"]))
        steps.append(dict(context=f"{x} + {y}", answer=str(x + y), chain_of_thought=f"{x} and {y} give {x + y}"))
    return dict(words=words, colours=colours, pronouns=pronouns, sums=sums, steps=steps)


def corpus(all_tasks):
    """Half of what is asked, so that some answers are right and some are not."""
    lines = [r["context"].strip() + " " + r["continuation"].strip() for r in all_tasks["words"][::2]]
    lines += [f"The colour of {thing} is {WORDS[c]}" for thing, c in list(zip(THINGS, COLOUR_OF))[:6]]
    lines += [r["context_options"][r["gold"]] + " " + r["continuation"] for r in all_tasks["pronouns"][:6]]
    lines += [f"{r['context']} {r['answer'].strip()}" for r in all_tasks["sums"][:9]]
    lines += [f"{r['context']} => {r['chain_of_thought']} #### {r['answer']}" for r in all_tasks["steps"][:9]]
    return lines


def make_tokenizer(lines, bos):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([" a b c " + line for line in lines], trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=["<|endoftext|>", "<|bos|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=2, show_progress=False))
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<|bos|> $A", pair=None, special_tokens=[("<|bos|>", 1)])
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    path = HERE / ("tokenizer_bos.json" if bos else "model/tokenizer.json")
    tokenizer.save(str(path), pretty=False)
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path), eos_token="<|endoftext|>", bos_token="<|bos|>",
                                                   pad_token="<|endoftext|>", padding_side="left")
    assert len(wrapped(" a", add_special_tokens=False)["input_ids"]) == 1
    return wrapped


def make_model(tokenizer, lines):
    torch.manual_seed(5)
    config = transformers.LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=MAX_SEQ_LEN, bos_token_id=1, eos_token_id=0, pad_token_id=0,
        tie_word_embeddings=False, initializer_range=0.08)
    model = transformers.LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.01)
    rng = random.Random(11)
    for _ in range(350):
        rows = []
        for _ in range(16):
            ids = tokenizer("\n".join(rng.choice(lines) for _ in range(5)))["input_ids"][:MAX_SEQ_LEN]
            rows.append(ids + [0] * (MAX_SEQ_LEN - len(ids)))
        batch = torch.tensor(rows)
        loss = model(input_ids=batch, labels=torch.where(batch == 0, -100, batch)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("trained to", loss.item())
    model.eval()
    folder = HERE / "model"
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return model


def data_set(case, shots, tokenizer, folder, path=None):
    file, kind, _, given = CASES[case]
    given = dict(given)
    return TYPES[kind][0](dataset_uri=str(path or HERE / "tasks" / f"{file}.jsonl"), tokenizer=tokenizer,
                          max_seq_len=given.pop("max_seq_len", MAX_SEQ_LEN), pad_tok_id=tokenizer.pad_token_id, num_fewshot=shots,
                          destination_path=f"{folder}/{case}-{shots}.jsonl", **given)


def sequences_of(data, kind):
    """Per item: the tokens of each sequence without padding, and how many at their end are the answer."""
    items = []
    for row in (data[i] for i in range(len(data))):
        if kind == "generation_task_with_answers":
            ids = row["context"]
            pad = data.padding_size
            assert len(ids) == pad
            while ids and ids[0] == data.pad_tok_id:
                ids = ids[1:]
            items.append(dict(prompt=ids, answers=sorted(row["aliases"])))
            continue
        contexts, spans = row[data.context_key], row["continuation_indices"]
        if kind == "language_modeling":
            contexts, spans = [contexts], [spans]
        items.append(dict(sequences=[dict(tokens=ids[:span[-1] + 1], answer=len(span)) for ids, span in zip(contexts, spans)],
                          gold=row.get("gold", 0) if kind != "language_modeling" else 0))
    return items


def run(data, kind, model, tokenizer):
    _, accuracy, calibration = TYPES[kind]
    metrics = {name: getattr(nlp, name)() for name in (accuracy, calibration) if name}
    texts, loglikelihoods = [], []
    for batch in DataLoader(data, batch_size=data.get_effective_batch_size(8), collate_fn=data.collate_fn):
        with torch.no_grad():
            if kind == "generation_task_with_answers":
                written = model.generate(batch["input_ids"], attention_mask=batch["attention_mask"], do_sample=False,
                                         **{k: v for k, v in batch["generation_kwargs"].items() if k != "stopping_criteria"})
                # As Composer's eval_forward; it stops at the criteria, which the metric cuts at anyway.
                outputs = tokenizer.batch_decode(written[:, batch["input_ids"].shape[1]:], skip_special_tokens=True)
                texts += outputs
                metrics[accuracy].update(batch, outputs, batch["labels"])
                continue
            logits = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
        labels = batch["labels"].clone()
        labels[:, :-1] = labels[:, 1:].clone()
        labels[:, -1] = -100
        for metric in metrics.values():
            metric.update(batch, logits, labels)
        for row, span in enumerate(batch["continuation_indices"]):
            chances = torch.log_softmax(logits[row, span - 1].double(), -1)
            loglikelihoods.append(chances.gather(1, labels[row, span - 1][:, None]).sum().item())
    result = dict(metrics={name: metric.compute().item() for name, metric in metrics.items()}, items=len(data))
    return {**result, **(dict(texts=texts) if texts else dict(loglikelihoods=loglikelihoods))}


class EvalState:
    """What EvalGauntlet looks at."""

    def __init__(self, metrics):
        self.eval_metrics = {label: {name: types.SimpleNamespace(compute=lambda v=v: torch.tensor(v, dtype=torch.float64))
                                     for name, v in values.items()} for label, values in metrics.items()}


def gauntlets(metrics, sizes):
    categories = [
        dict(name="language", benchmarks=[dict(name="words", num_fewshot=2, random_baseline=0.0),
                                          dict(name="pronouns", num_fewshot=0, random_baseline=0.5)]),
        dict(name="knowledge", benchmarks=[dict(name="colours_by_category", num_fewshot=1, random_baseline=0.25),
                                           dict(name="colours", num_fewshot=0, random_baseline=0.25),
                                           dict(name="sums", num_fewshot=3, random_baseline=0.0)]),
        dict(name="missing", benchmarks=[dict(name="words", num_fewshot=0, random_baseline=0.0),
                                         dict(name="never_run", num_fewshot=0, random_baseline=0.1)]),
    ]
    out = []
    for weighting, subtract, rescale, averages in [
            ("EQUAL", True, True, None), ("SAMPLE_SZ", True, True, dict(all=["language", "knowledge"], none=["missing"])),
            ("LOG_SAMPLE_SZ", True, False, dict(some=["language", "missing"])), ("LOG_SAMPLE_SZ", False, False, None)]:
        keys = [f"metrics/{label}/{name}" for label, values in metrics.items() for name in values]
        gauntlet = EvalGauntlet(logger_keys=keys, categories=json.loads(json.dumps(categories)), weighting=weighting,
                                subtract_random_baseline=subtract, rescale_accuracy=rescale, benchmark_sizes=sizes, averages=averages)
        out.append(dict(weighting=weighting, subtract_random_baseline=subtract, rescale_accuracy=rescale, averages=averages or {},
                        scores=gauntlet.eval_after_all(EvalState(metrics), None)))
    return dict(categories=categories, cases=out)


def harness(model, tokenizer):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM
    pairs = [("The colour of grass is", " green"), ("The colour of grass is ", "green"), ("The colour of coal", " is black\n1 + 1 = 2"),
             ("", "The dog"), ("naïve", " café"), (" ".join(["the cat sleeps"] * 40), " and the dog runs"), ("2 + 2 =", " 4"),
             ("4 + 1 =", " 5"), ("the cat that", " sleeps now"), ("x", "y")]
    lm = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=4, max_length=MAX_SEQ_LEN, device="cpu")
    answers = lm.loglikelihood([Instance("loglikelihood", {}, pair, i) for i, pair in enumerate(pairs)], disable_tqdm=True)
    return [dict(context=c, continuation=t, logprob=float(p), is_greedy=bool(g)) for (c, t), (p, g) in zip(pairs, answers)]


def write(name, value):
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, indent=None, separators=(",", ":")) + "\n")


def main():
    for folder in ("tasks", "model"):
        (HERE / folder).mkdir(exist_ok=True)
    write("model/tokenizer_config.json", dict(bos_token="<|bos|>", eos_token="<|endoftext|>", tokenizer_class="PreTrainedTokenizerFast"))
    all_tasks = tasks()
    for name, rows in all_tasks.items():
        (HERE / "tasks" / f"{name}.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows))
    lines = corpus(all_tasks)
    tokenizers = {"plain": make_tokenizer(lines, False), "bos": make_tokenizer(lines, True)}
    model = make_model(tokenizers["plain"], lines)
    prompts, results, metrics, sizes = [], [], {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for style, tokenizer in tokenizers.items():
            for case, (file, kind, counts, given) in CASES.items():
                for shots in counts:
                    data = data_set(case, shots, tokenizer, folder)
                    entry = dict(case=case, file=file, type=kind, num_fewshot=shots, tokenizer=style, given=given,
                                 items=sequences_of(data, kind))
                    if kind == "generation_task_with_answers":
                        entry["max_new_tokens"] = data.max_answer_length
                    prompts.append(entry)
                    if style == "plain":
                        result = run(data, kind, model, tokenizer)
                        results.append(dict(case=case, num_fewshot=shots, **result))
                        metrics[f"{case}/{shots}-shot"], sizes[f"{case}/{shots}-shot"] = result["metrics"], result["items"]
        parts = icl.partition_dataset_by_category(str(HERE / "tasks/colours.jsonl"), f"{folder}/parts.jsonl", {}, {})
        for category, path in parts.items():
            os.makedirs(f"{folder}/{category}")
            data = data_set("colours", 1, tokenizers["plain"], f"{folder}/{category}", path)
            result = run(data, "multiple_choice", model, tokenizers["plain"])
            results.append(dict(case="colours_by_category", num_fewshot=1, category=category, **result))
            label = f"colours_by_category/1-shot/{category}"
            metrics[label], sizes[label] = result["metrics"], result["items"]
    write("prompts.json", prompts)
    write("results.json", results)
    write("gauntlet.json", gauntlets(metrics, sizes))
    shots = []
    for size, count, seed in [(2, 1, 1234), (8, 3, 1234), (10, 10, 1), (30, 5, 1234), (100, 10, 1234), (1000, 25, 99), (10042, 10, 1234),
                              (70000, 3, 5), (400, 100, 2**40 + 1), (24, 3, 7), (50, 4, 8), (17, 2, 9)]:
        rng = random.Random(seed)
        shots.append(dict(size=size, count=count, seed=seed,
                          shown=[list(get_fewshot_sample_idxs(size, count, i % size, rng)) for i in range(20)]))
    write("few_shot.json", shots)
    odd = ["The  Cat's_a an THE hat!", "", " a ", "İstanbul—ÉCOLE", "theatre, an' \u2018the\u2019 \u00b4x`", "A.B.C", "tab\tand\u2003wide\u00a0space\u0085x",
           "ΣΑΣ the\u0301 a\u0301", "ŉ ß K ǅ", "12,000.50 $", "\u1c80 x²a the² _the_", "an\nthe\x1ca"]
    write("answers.json", [dict(text=t, normalized=nlp.InContextLearningGenerationExactMatchAccuracy().normalize_answer(t)) for t in odd])
    (HERE / "harness.jsonl").write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in harness(model, tokenizers["plain"])))
    for one in results:
        print(one["case"], one["num_fewshot"], one.get("category", ""), one["metrics"], one.get("texts", "")[:3])


if __name__ == "__main__":
    main()
