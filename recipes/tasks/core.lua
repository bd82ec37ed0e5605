-- CORE of DCLM (arXiv:2406.11794): 22 tasks, their centred accuracies, and the mean of these.
local t = require "tycho"

local data = t.env("TYCHO_CORE_DATA", "eval/local_data")   -- laid out as LLM Foundry's scripts/eval/local_data
local newline_answer = "\nAnswer: "

local tasks, categories = {}, { core = {} }
local averages = {}

-- baseline: the accuracy of guessing, as version 2 of DCLM's eval_meta_data.csv has it.
local function group(folder, list)
  averages[folder] = {}
  for _, task in ipairs(list) do
    local label, file, kind, shots, baseline = task[1], task[2], task[3], task[4], task[5]
    table.insert(tasks, {
      label = label, path = ("%s/%s/%s.jsonl"):format(data, folder, file), type = kind, num_fewshot = { shots },
      continuation_delimiter = task.delimiter or " ", has_categories = task.has_categories or false,
    })
    local benchmark = { name = label, num_fewshot = shots, random_baseline = baseline }
    table.insert(categories.core, benchmark)
    categories[label] = { benchmark }
    table.insert(averages[folder], label)
  end
end

local words, choice, schema = "language_modeling", "multiple_choice", "schema"

group("world_knowledge", {
  { "jeopardy", "jeopardy_all", words, 10, 0, delimiter = newline_answer, has_categories = true },
  { "bigbench_qa_wikidata", "bigbench_qa_wikidata", words, 10, 0 },
  { "arc_easy", "arc_easy", choice, 10, 0.25, delimiter = newline_answer },
  { "arc_challenge", "arc_challenge", choice, 10, 0.25, delimiter = newline_answer },
})
group("commonsense_reasoning", {
  { "copa", "copa", choice, 0, 0.5 },
  { "commonsense_qa", "commonsense_qa", choice, 10, 0.403 },
  { "piqa", "piqa", choice, 10, 0.5, delimiter = newline_answer },
  { "openbook_qa", "openbook_qa", choice, 0, 0.25 },
})
group("language_understanding", {
  { "hellaswag_zeroshot", "hellaswag", choice, 0, 0.25 },
  { "lambada_openai", "lambada_openai", words, 0, 0 },
  { "hellaswag", "hellaswag", choice, 10, 0.25 },
  { "winograd", "winograd_wsc", schema, 0, 0.5 },
  { "winogrande", "winogrande", schema, 0, 0.5 },
  { "bigbench_language_identification", "bigbench_language_identification", choice, 10, 0.25 },
})
group("symbolic_problem_solving", {
  { "bigbench_dyck_languages", "bigbench_dyck_languages", words, 10, 0 },
  { "agi_eval_lsat_ar", "agi_eval_lsat_ar", choice, 3, 0.25 },
  { "bigbench_cs_algorithms", "bigbench_cs_algorithms", words, 10, 0 },
  { "bigbench_operators", "bigbench_operators", words, 10, 0 },
  { "bigbench_repeat_copy_logic", "bigbench_repeat_copy_logic", words, 10, 0 },
})
group("reading_comprehension", {
  { "squad", "squad", words, 10, 0 },
  { "coqa", "coqa", words, 0, 0 },
  { "boolq", "boolq", choice, 10, 0.62, delimiter = newline_answer },
})

return { tasks = tasks, gauntlet = { categories = categories, averages = averages } }
