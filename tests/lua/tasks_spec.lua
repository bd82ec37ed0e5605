-- Files of in-context tasks: what they give, and where what is wrong with them stands.
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
