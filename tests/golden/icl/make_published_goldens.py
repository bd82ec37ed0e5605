"""What LLM Foundry makes of tasks with the delimiters, examples and prompts of its published task lists.

Writes published/tasks/*.jsonl and published/prompts.json: for each case what LLM Foundry's data set classes give. The first item of a
case has its tokens; of all items there is a number that their tokens give (see fingerprint).

The cases are the 14 forms of task that tasks.yaml, tasks_v0.1.yaml, tasks_v0.2.yaml and tasks_v0.3.yaml have between them, with the
numbers of examples that stand there. Their rows are not the published ones, whose licences differ: they are written here in the same
shape, white space and all. With the published files, as far as a clone of LLM Foundry has them:
  python tests/golden/icl/make_published_goldens.py --repo llm-foundry --rows 200 --out /tmp/published
  TYCHO_PUBLISHED_TASKS=/tmp/published build/cpu/bin/icl_test --gtest_filter='*Published*'

Made with the environment of make_icl_goldens.py; the lists are those of llm-foundry 8c8dd48f7 (21 July 2025).
"""
import argparse
import json
import os
import pathlib
import random
import tempfile

from make_icl_goldens import HERE, TYPES, icl, sequences_of, transformers

OWN_LENGTH, PUBLISHED_LENGTH = 1024, 8192  # tokens of the tiny tokenizer
STEPS = dict(cot_delimiter=" #### ", continuation_delimiter="\nA: Let's think step by step. ")
ANSWER_IS = dict(cot_delimiter="The answer is ", continuation_delimiter="\n\nA:", do_normalization=False,
                 early_stopping_criteria=["\n\n", "Question:"])
# label, file, type, numbers of examples, what the published entry has beside them.
FORMS = [
    ("jeopardy", "jeopardy", "language_modeling", [3, 10], dict(continuation_delimiter="\nAnswer: ", has_categories=True)),
    ("lambada_openai", "stories", "language_modeling", [0], {}),
    ("bigbench_dyck_languages", "brackets", "language_modeling", [5, 10], {}),
    ("simple_arithmetic_withspaces", "arithmetic", "language_modeling", [5, 10], {}),
    ("arc_challenge", "science", "multiple_choice", [3, 10, 25], dict(continuation_delimiter="\nAnswer: ")),
    ("mmlu", "subjects", "multiple_choice", [5, 10], dict(continuation_delimiter="\nAnswer: ", has_categories=True)),
    ("copa", "causes", "multiple_choice", [0], {}),
    ("hellaswag", "endings", "multiple_choice", [0, 10], {}),
    ("bbq", "subjects", "multiple_choice", [3], dict(has_categories=True)),
    ("winograd", "referents", "schema", [0, 3, 5], {}),
    ("triviaqa_sm_sub", "trivia", "generation_task_with_answers", [3], {}),
    ("triviaqa_sm_sub_v0.3", "trivia", "generation_task_with_answers", [3], dict(do_normalization=True)),
    ("gsm8k", "word_problems", "generation_task_with_answers", [3, 5, 8], dict(question_prelimiter="Q: ", **STEPS)),
    ("agi_eval_sat_math", "formulas", "generation_task_with_answers", [3], STEPS),
    ("svamp", "word_problems", "generation_task_with_answers", [3, 5], dict(
        question_prelimiter="Q: ", cot_delimiter=" #### ", continuation_delimiter="\nUsing the formula below:\n")),
    ("gsm8k_v0.3", "prepended", "generation_task_with_answers", [0], dict(question_prelimiter="", **ANSWER_IS)),
    ("svamp_v0.3", "word_problems", "generation_task_with_answers", [5], dict(question_prelimiter="Question: ", **ANSWER_IS)),
]
CITIES = ["Lisbon", "Oslo", "Quito", "Hanoi", "Accra", "Lima", "Riga", "Doha"]
NAMES = ["Mary", "Paul", "Sofía", "Chen", "O'Neil", "Zoë", "Amara", "Ivan"]
THINGS = ["crayons", "sacks of flour", "pencils", "fresh duck eggs", "tickets", "marbles"]


def brackets(rng):
    pairs, stack, text = {"[": "]", "{": "}", "(": ")", "<": ">"}, [], []
    for _ in range(rng.randrange(4, 14)):
        if stack and rng.random() < 0.4:
            text.append(pairs[stack.pop()])
        else:
            stack.append(rng.choice("[{(<"))
            text.append(stack[-1])
    stack = stack or ["["]
    return " ".join(text), " ".join(pairs[s] for s in reversed(stack))


def word_problem(rng):
    name, thing, x, y = rng.choice(NAMES), rng.choice(THINGS), rng.randrange(3, 90), rng.randrange(2, 40)
    context = f"{name} has {x} {thing}. After school {name} buys {y} more at ${rng.randrange(2, 9)} each.  How many {thing} are there now?"
    return dict(context=context, chain_of_thought=f"{name} begins with {x}.\nThen there are {x} + {y} = <<{x}+{y}={x + y}>>{x + y} {thing}.",
                answer=str(x + y))


def own_tasks():
    rng = random.Random(18)
    rows = {name: [] for _, name, *_ in FORMS}
    for i in range(26):
        city, other = rng.sample(CITIES, 2)
        year = rng.randrange(1400, 1990)
        rows["jeopardy"].append(dict(
            context=f"{['WORLD HISTORY', 'LITERATURE', 'WORD ORIGINS'][i % 3]}: Ships left this port & reached {other} in Nov. {year}"
            + (" (it's a capital)" if i % 4 == 0 else ""), continuation=city, category=["world_history", "literature", "word_origins"][i % 3]))
        rows["stories"].append(dict(
            context=f"\"We won't be that long,\" said {rng.choice(NAMES)}.\n\n{rng.choice(NAMES)} looked at the {rng.choice(THINGS)}, feeling "
            f"stunned -- the road to {city} was closed -- and still hoped to see", continuation=city))
        text, rest = brackets(rng)
        rows["brackets"].append(dict(context="Complete the rest of the sequence, making sure that the parentheses are closed properly. \n\n"
                                     f"Input: {text}\nOutput:", continuation=rest))
        x, y = rng.randrange(1000), rng.randrange(1000)
        rows["arithmetic"].append(dict(context=f"{x} - {y} =", continuation=f" {x - y}"))
        choices = [f"They {verb} the {rng.choice(THINGS)}." for verb in ("heat", "cool", "hide", "count")][:3 + i % 2]
        rows["science"].append(dict(choices=choices, query=f"Question: Which statement best explains what {rng.choice(NAMES)} saw near {city}?",
                                    gold=i % len(choices)))
        rows["subjects"].append(dict(query=f"Question: What is the capital?\nContext: {city} is older than {other}.", gold=i % 4, choices=rng.sample(
            CITIES, 4), category=["abstract_algebra", "world_religions"][i % 2]))
        rows["causes"].append(dict(query=f"{rng.choice(NAMES)} dropped the {rng.choice(THINGS)}, therefore", gold=i % 2,
                                   choices=[f"everyone left {city}.", "they fell on the floor."]))
        rows["endings"].append(dict(query=f"Removing ice from car: A man is sitting near {city}. he", gold=i % 4,
                                    choices=[f"is using wrap to wrap {t}." for t in rng.sample(THINGS, 4)]))
        a, b = rng.sample(NAMES, 2)
        rows["referents"].append(dict(context_options=[f"{a} refused {b} the {rng.choice(THINGS)} because {a}", f"{a} refused {b} because {b}"],
                                      continuation="feared violence.", gold=i % 2))
        rows["trivia"].append(dict(context=f"Question: In which city did {a} meet {b}?\nAnswer:", answer=city,
                                   aliases=[city, f"{city} (city)", f"The {city.upper()}"]))
        rows["word_problems"].append(word_problem(rng))
        rows["formulas"].append(dict(context=f"Q: If $\\frac{{x-1}}{{{i + 2}}}=k$ and $k={x % 9}$, what is the value of $x ?$",
                                     chain_of_thought=f"Since $k={x % 9}$, one can substitute.\nThus $x-1={(i + 2) * (x % 9)}$ .",
                                     answer=f"${(i + 2) * (x % 9) + 1}$"))
        shown = [word_problem(rng) for _ in range(2)]
        asked = word_problem(rng)
        asked["context"] = "\n\n".join(f"Q: {one['context']}\n\nA: {one['chain_of_thought']} The answer is {one['answer']}." for one in shown) \
            + f"\n\nQ: {asked['context']}"
        rows["prepended"].append(asked)
    return rows


def published(repo, count, folder):
    """The entries of the published lists, each once, whose files the clone has; a file's first rows."""
    import yaml
    forms, seen = [], set()
    for name in ("tasks", "tasks_v0.1", "tasks_v0.2", "tasks_v0.3"):
        for entry in yaml.safe_load((repo / f"scripts/eval/yamls/{name}.yaml").read_text())["icl_tasks"]:
            file, key = repo / "scripts" / entry["dataset_uri"], json.dumps(entry, sort_keys=True)
            if key in seen or not file.is_file():
                continue
            seen.add(key)
            (folder / f"{file.stem}.jsonl").write_text("".join(file.read_text().splitlines(keepends=True)[:count]))
            given = {k: v for k, v in entry.items() if k not in ("label", "dataset_uri", "icl_task_type", "num_fewshot")}
            forms.append((f"{entry['label']}_{name}", file.stem, entry["icl_task_type"], entry["num_fewshot"], given))
    return forms


def fingerprint(lists):
    number = 0
    for tokens in lists:
        for token in tokens + [-1]:
            number = (number * 6364136223846793005 + token + 2) % 2**64
    return number


def case(form, shots, path, length, tokenizer, folder):
    label, file, kind, _, given = form
    given = dict(given)
    arguments = {("prelimiter" if k == "question_prelimiter" else k): v for k, v in given.items() if k != "has_categories"}
    parts = {"": str(path)}
    if given.get("has_categories"):
        parts = icl.partition_dataset_by_category(str(path), f"{folder}/parts.jsonl", {}, {})
    out = []
    for category in sorted(parts):
        destination = f"{folder}/{len(os.listdir(folder))}.jsonl"
        data = TYPES[kind][0](dataset_uri=parts[category], tokenizer=tokenizer, max_seq_len=length, pad_tok_id=tokenizer.pad_token_id,
                              num_fewshot=shots, destination_path=destination, **arguments)
        items = sequences_of(data, kind)
        lists = [[item["prompt"]] if "prompt" in item else [s["tokens"] for s in item["sequences"]] for item in items]
        out.append(dict(category=category, first=items[0], fingerprints=[fingerprint(one) for one in lists]))
        if kind == "generation_task_with_answers":
            out[-1]["max_new_tokens"] = data.max_answer_length
    return dict(case=label, file=file, type=kind, num_fewshot=shots, max_seq_len=length, given=given, parts=out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repo", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "published")
    asked = parser.parse_args()
    tasks = asked.out / "tasks"
    tasks.mkdir(parents=True, exist_ok=True)
    if asked.repo:
        forms = published(asked.repo, asked.rows, tasks)
    else:
        forms = FORMS
        for name, rows in own_tasks().items():
            (tasks / f"{name}.jsonl").write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(HERE / "model/tokenizer.json"), eos_token="<|endoftext|>",
                                                     bos_token="<|bos|>", pad_token="<|endoftext|>", padding_side="left")
    cases = []
    for form in forms:
        for shots in form[3]:
            with tempfile.TemporaryDirectory() as folder:
                cases.append(case(form, shots, tasks / f"{form[1]}.jsonl", PUBLISHED_LENGTH if asked.repo else OWN_LENGTH, tokenizer, folder))
            print(form[0], shots, [len(part["fingerprints"]) for part in cases[-1]["parts"]], flush=True)
    (asked.out / "prompts.json").write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
