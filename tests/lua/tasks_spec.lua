-- Files of in-context tasks: what they give, and where what is wrong with them stands.
local native = require "tycho.native"
local tasks = require "tycho.tasks"

local function load(text)
  return tasks.load { file = "mine/tasks.lua", read_file = function(path)
    if path == "mine/tasks.lua" then return text end
    return nil, path .. " is not there"
  end }
end

describe("a file of tasks", function()
  it("gives the tree of r.icl, with defaults", function()
    local tree = load [[
local shots = { 0, 5 }
return { tasks = { { label = "lambada", path = "lambada.jsonl", type = "language_modeling", num_fewshot = shots } },
  gauntlet = { categories = { language = { { name = "lambada", num_fewshot = 5 } } } } }]].tree
    expect(#tree.tasks).to_equal(1)
    expect(tree.tasks[1].num_fewshot[2]).to_equal(5)
    expect(tree.tasks[1].example_delimiter).to_equal "\n"
    expect(tree.gauntlet.weighting).to_equal "EQUAL"
    expect(tree.gauntlet.categories.language[1].name).to_equal "lambada"
  end)
  it("is checked like a recipe", function()
    expect(load("return { tasks = { { label = 'a', path = 'a.jsonl', type = 'lm' } } }").report).to_contain "language_modeling"
    expect(load("return { task = {} }").report).to_contain "tasks"
    expect(load("return { tasks = { { label = 'a', type = 'schema' } } }").report).to_contain "path"
    local both = load("local one = { label = 'a', path = 'a.jsonl', type = 'schema' }\nreturn { tasks = { one, one } }")
    expect(both.report).to_contain 'tasks.2.label: "a" is the label of two tasks'
  end)
  it("says when it is not a table, not Lua or not there", function()
    expect(load("local x = 1").report).to_contain "mine/tasks.lua returned a boolean, not a table"
    expect(load("return {").report).to_contain "mine/tasks.lua"
    expect(tasks.load { file = "no.lua", read_file = function(path) return nil, path .. " is not there" end }.report)
      .to_contain "no.lua"
  end)
end)

-- What DCLM publishes: icl_tasks of eval/heavy.yaml (15af3ce), "low_variance_datasets" of eval/additional_aggregation.json (c7ed275), whose
-- mean is Core in eval/aggregated_metrics.py, and "Random baseline" of eval/eval_meta_data_v1.csv (361714b). Version 2 has three others.
local published = [[
hellaswag_zeroshot language_understanding/hellaswag multiple_choice 0 25
jeopardy world_knowledge/jeopardy_all language_modeling 10 0 answer categories
bigbench_qa_wikidata world_knowledge/bigbench_qa_wikidata language_modeling 10 0
arc_easy world_knowledge/arc_easy multiple_choice 10 25 answer
arc_challenge world_knowledge/arc_challenge multiple_choice 10 25 answer
copa commonsense_reasoning/copa multiple_choice 0 50
commonsense_qa commonsense_reasoning/commonsense_qa multiple_choice 10 20 version2=40.3
piqa commonsense_reasoning/piqa multiple_choice 10 50 answer
openbook_qa commonsense_reasoning/openbook_qa multiple_choice 0 25
lambada_openai language_understanding/lambada_openai language_modeling 0 0
hellaswag language_understanding/hellaswag multiple_choice 10 25
winograd language_understanding/winograd_wsc schema 0 50
winogrande language_understanding/winogrande schema 0 50
bigbench_dyck_languages symbolic_problem_solving/bigbench_dyck_languages language_modeling 10 0
agi_eval_lsat_ar symbolic_problem_solving/agi_eval_lsat_ar multiple_choice 3 20 version2=25
bigbench_cs_algorithms symbolic_problem_solving/bigbench_cs_algorithms language_modeling 10 0
bigbench_operators symbolic_problem_solving/bigbench_operators language_modeling 10 0
bigbench_repeat_copy_logic symbolic_problem_solving/bigbench_repeat_copy_logic language_modeling 10 0
squad reading_comprehension/squad language_modeling 10 0
coqa reading_comprehension/coqa language_modeling 0 0
boolq reading_comprehension/boolq multiple_choice 10 62 answer
bigbench_language_identification language_understanding/bigbench_language_identification multiple_choice 10 9.1 version2=25
]]

describe("CORE", function()
  it("has DCLM's published tasks, files, kinds, shots, delimiters and baselines", function()
    local folder = debug.getinfo(1, "S").source:match "^@(.*)tests/lua/[^/]*$"
    local tree = load(native.read_file(folder .. "recipes/tasks/core.lua")).tree
    local tasks_by_label, num_published = {}, 0
    for _, task in ipairs(tree.tasks) do tasks_by_label[task.label] = task end
    local baselines = {}
    for _, benchmark in ipairs(tree.gauntlet.categories.core) do baselines[benchmark.name] = benchmark.random_baseline end
    for line in published:gmatch "[^\n]+" do
      local label, file, kind, shots, percent, rest = line:match "^(%S+) (%S+) (%S+) (%S+) (%S+)(.*)$"
      local task = tasks_by_label[label]
      num_published = num_published + 1
      expect({ task.path:match "[^/]+/[^/]+$", task.type, #task.num_fewshot, task.num_fewshot[1] })
        .to_equal { file .. ".jsonl", kind, 1, tonumber(shots) }
      expect(task.continuation_delimiter).to_equal(rest:find "answer" and "\nAnswer: " or " ")
      expect(task.has_categories).to_equal(rest:find "categories" ~= nil)
      local version2 = rest:match "version2=(%S+)"
      expect(math.abs(baselines[label] - tonumber(version2 or percent) / 100) < 1e-12).to_equal(true)
    end
    expect({ num_published, #tree.tasks, #tree.gauntlet.categories.core }).to_equal { 22, 22, 22 }
  end)
end)
