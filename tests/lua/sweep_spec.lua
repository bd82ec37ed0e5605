-- t.arg, t.random and t.slurm in recipes; the points of a space are tested through the program (tests/host/sweep).
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
