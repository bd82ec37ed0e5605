-- t.arg, t.random and t.slurm in recipes; the words for spaces of a sweep. Its points are tested through the program (tests/host/sweep).
local fixture = require "fixture"
local native = require "tycho.native"

describe("t.arg", function()
  it("reads arguments that are no keys, in the type of the default", function()
    local text = fixture.whole 'r.seed = t.arg("which", 3)\nif t.arg("big", false) then r.seq_len = 2048 end'
    expect(fixture.tree(text).seed).to_equal(3)
    local tree = fixture.tree(text, { "which=5", "big=true" })
    expect(tree.seed).to_equal(5)
    expect(tree.seq_len).to_equal(2048)
  end)
  it("refuses what nobody asks for as an unknown key", function()
    local report = fixture.report(fixture.whole 'r.seed = t.arg("which", 3)', { "whcih=5" })
    expect(report).to_contain "unknown key  whcih"
  end)
  it("wants the type of its default", function()
    local report = fixture.report(fixture.whole 'r.seed = t.arg("which", 3)', { "which=x" })
    expect(report).to_contain 'the argument which expected a number, got "x"'
  end)
  it("says what is missing without a default", function()
    local report = fixture.report(fixture.whole 'r.run_name = t.arg("name_of_it")')
    expect(report).to_contain "add  name_of_it=VALUE  to the command"
  end)
  it("does not read keys", function()
    expect(fixture.report(fixture.whole 'local x = t.arg("seed", 1)')).to_contain "seed is a key: read it as a value"
  end)
end)

describe("t.random", function()
  it("is the same in every process and another for every name and seed", function()
    local function first(stream) return tonumber(fixture.tree(fixture.whole("r.optimizer.lr = " .. stream .. ":uniform(1, 2)")).optimizer.lr) end
    local a = first 't.random("a")'
    expect(first 't.random("a")').to_equal(a)
    expect(first 't.random("b")' == a).to_equal(false)
    expect(first 't.random("a", 3)' == a).to_equal(false)
  end)
  it("draws within its bounds", function()
    local text = fixture.whole [[
local rng = t.random "x"
for _ = 1, 500 do
  local u, l, i, c = rng:uniform(2, 3), rng:log(1e-4, 1e-2), rng:int(1, 3), rng:choice { 7, 8 }
  assert(u >= 2 and u < 3 and l >= 1e-4 and l < 1e-2 and i >= 1 and i <= 3 and i % 1 == 0 and (c == 7 or c == 8))
end
local sum, squares = 0, 0
for _ = 1, 2000 do
  local x = rng:normal(5, 2)
  sum, squares = sum + x, squares + (x - 5) ^ 2
end
assert(math.abs(sum / 2000 - 5) < 0.2 and math.abs(math.sqrt(squares / 2000) - 2) < 0.2)]]
    fixture.tree(text)
  end)
end)

describe("t.slurm", function()
  it("knows no rank", function()
    expect(fixture.report(fixture.whole "local x = t.slurm.rank")).to_contain "all ranks read one recipe"
    expect(fixture.report(fixture.whole "local x = t.slurm.jobid")).to_contain "available: array_task, available"
  end)
end)

describe("the page on sweeps", function()
  it("has every key and every constructor", function()
    local folder = debug.getinfo(1, "S").source:match "^@(.*)tests/lua/[^/]*$"
    local keys = native.read_file(folder .. "docs/sweeps.md"):match "## All keys(.-)\n## "
    local function look(fields, path)
      for _, field in ipairs(fields) do
        local here = path .. field.name
        if field.type == "struct" then look(field.fields, here .. ".") else expect(keys).to_contain("`" .. here .. "`") end
        local component = field.type == "map" and field.item or field
        for kind, of in pairs(component.kinds or {}) do
          local row = keys:match("[^\n]*`t%." .. component.namespace .. "%." .. kind .. "`[^\n]*")
          if kind ~= "rule" then expect(row ~= nil).to_equal(true) end
          for _, one in ipairs(of.fields) do expect(row).to_contain("`" .. one.name) end
        end
      end
    end
    look(native.sweep_schema().fields, "")
  end)
end)

local function plan(argument)
  local result = require "tycho.sweep".load { of_recipe = true, name = "s", recipe = "x.lua", trials = 2, only_files = true, quiet = true,
    files = { ["x.lua"] = fixture.whole() }, arguments = { { argument = 3, text = argument }, { argument = 4, text = "metric.name=loss" } } }
  return result.problems > 0 and result.report or nil
end

-- What a report says to type, without the quotes of the shell.
local function advised(report)
  local words = {}
  for word in (" " .. (report:match "write  ([^\n]*)" or "")):gsub("'", ""):gmatch "[^%s]+=[^%s]+" do words[#words + 1] = word end
  return words
end

describe("a space of another system", function()
  local kSpellings = {
    { 'optimizer.lr=interval(1e-4,1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=interval(1e-2,1e-4)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=tag(log,interval(1e-4,2e-4))', 'optimizer.lr=log(1e-4,2e-4)' },
    { 'optimizer.lr=~loguniform(1e-4,1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=uniform(0.1,0.3)', 'optimizer.lr=range(0.1,0.3)' },
    { 'optimizer.lr=tune.loguniform(1e-4, 1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=loguniform(1e-4,1e-2,10)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=log_uniform_values(low=1e-4,high=1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=log_uniform(-4,-2)', 'optimizer.lr=log(0.01832,0.1353)' },
    { 'optimizer.lr=hp.loguniform("lr",-4,-2)', 'optimizer.lr=log(0.01832,0.1353)' },
    { 'optimizer.lr=trial.suggest_float("lr",1e-4,1e-2,log=True)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=np.logspace(-4,-2,3)', 'optimizer.lr=log(0.0001,0.01,3)' },
    { 'optimizer.weight_decay=linspace(0,1,3)', 'optimizer.weight_decay=range(0,1,0.5)' },
    { 'optimizer.lr=quniform(0.1,0.5,0.1)', 'optimizer.lr=range(0.1,0.5,0.1)' },
    { 'optimizer.lr=range(0.1,0.5,step=0.1)', 'optimizer.lr=range(0.1,0.5,0.1)' },
    { 'model.layers=range([1,4])', 'model.layers=int(1,4)' },
    { 'model.layers=range(1,4)', 'model.layers=int(1,4)' },
    { 'model.layers=log(1,4)', 'model.layers=int(1,4)' },
    { 'model.layers=randint(1,5)', 'model.layers=int(1,4)' },
    { 'model.layers=arange(1,5,2)', 'model.layers=int(1,3,2)' },
    { 'seed=range(5)', 'seed=int(0,4)' },
    { 'model.width=interval(64,128)', 'model.width=int(64,128,8)' },
    { 'model.width=int(64,128)', 'model.width=int(64,128,8)' },
    { 'model.width=choice([64,128])', 'model.width=choice(64,128)' },
    { 'model.width=tune.grid_search([64,128])', 'model.width=choice(64,128)' },
    { 'model.width=hp.choice("w",[64,128])', 'model.width=choice(64,128)' },
    { 'model.width=choice {64,128}', 'model.width=choice(64,128)' },
    { 'run_name=choice([a,b])', 'run_name=choice(a,b)' },
    { 'model.tied=choice([True,False])', 'model.tied=choice(true,false)' },
    { 'optimizer.lr=t.space.log(1e-4,1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=log(1e-4,1e-2', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=log{low=1e-4,high=1e-2}', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'optimizer.lr=1e-4..1e-2', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'model.layers=1-4', 'model.layers=int(1,4)' },
    { 'optimizer.lr=[1e-3,1e-2]', 'optimizer.lr=1e-3,1e-2' },
    { 'optimizer.lr=1e-3;1e-2', 'optimizer.lr=1e-3,1e-2' },
    { 'optimizer.lr=1e-3 1e-2', 'optimizer.lr=1e-3,1e-2' },
    { 'optimizer.lr=1e-3,1e-2,', 'optimizer.lr=1e-3,1e-2' },
    { 'model.tied=True,False', 'model.tied=true,false' },
    { 'learning_rate=loguniform(1e-4,1e-2)', 'optimizer.lr=log(1e-4,1e-2)' },
    { 'learning_rate=1e-3,1e-2', 'optimizer.lr=1e-3,1e-2' },
    { 'warmup_steps=choice([1,2])', 'scheduler.t_warmup=1ba,2ba' },
  }
  it("is answered with the right spelling, which is accepted when typed", function()
    for _, one in ipairs(kSpellings) do
      local report = plan(one[1]) or ""
      expect(advised(report)).to_equal { one[2] }
      expect(report:find("the space is empty", 1, true)).to_equal(nil)
      expect(plan(one[2])).to_equal(nil)
    end
  end)
  it("that says nothing is answered with one that the key takes", function()
    for _, one in ipairs {
      { 'optimizer.lr=beta(1,2)', "write  optimizer.lr=1e-4,1e-2  or  'optimizer.lr=log(1e-4,1e-2)'" },
      { 'optimizer.lr=interval(-4,-2)', "write  optimizer.lr=1e-4,1e-2  or  'optimizer.lr=log(1e-4,1e-2)'" },
      { 'model.width=beta(1,2)', "write  model.width=64,128  or  'model.width=int(64,128,8)'" },
      { 'max_duration=interval(10,20)', "write  max_duration=10ba,20ba" },
      { 'optimizer.lr=fast', "optimizer.lr=fast: expected number > 0" },
      { 'optimizer.lr=normal(0,0.02)', "optimizer.lr=0: expected number > 0" },
      { 'lr=uniform(0,1)', "did you mean  optimizer.lr" },
      { 'optimizer.lr=1e-3', "there are no trials: no key has several values" },
    } do
      local report = plan(one[1])
      expect(report).to_contain(one[2])
      for _, word in ipairs(one[2]:find "^write" and advised(report) or {}) do expect(plan(word)).to_equal(nil) end
    end
  end)
end)
