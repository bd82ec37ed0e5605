-- Specs of t.act.define: activations as functions of one number, where they may stand, and what is said of wrong ones.
local session = require "tycho.session"

local kHead = 'local t = require "tycho"\nlocal r = t.recipe "x"\n'
local kNeeds = 'r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.max_duration = "10ba"\nr.train_data = t.data.mds { local_dir = "d" }\n'

local function load(lines, arguments)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  return session.load { file = "x.lua", arguments = numbered, output = function() end,
    read_file = function(path)
      if path == "x.lua" then return kHead .. kNeeds .. lines .. "\nreturn r\n" end
      return nil, "cannot read " .. path, true
    end }
end

local function activation(...)
  local result = load(...)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree.model.activation, result
end

-- What is said of lines, the first of which is line 6.
local function report(...)
  local result = load(...)
  if result.problems == 0 then error("expected a report", 2) end
  return result.report
end

local function nodes_of(made)
  local ops = {}
  for i, node in ipairs(made.expression.nodes) do ops[i] = node[1] end
  return table.concat(ops, " ")
end

local kSilu = "t.act.define(function(x) return x * t.sigmoid(x) end)"

describe("an activation of the recipe", function()
  it("is refused where Lua looks at the symbol instead of its number", function()
    for _, body in ipairs { "x * (({ 1, 7 })[x] or 1)", "type(x) == 'number' and x or x * 2", "x + (rawequal(x, 2) and 1 or 0)", "x * (({ [-3] = 2 })[x] or 1)" } do
      local said = report("r.model = t.model.llama { activation = t.act.define(function(x) return " .. body .. " end) }")
      assert(said:find("the function gives another y for plain numbers: with x = ", 1, true), said)
    end
    assert(report("r.model = t.model.llama { activation = t.act.define(function() return 3 end) }"):find("the same number for every x", 1, true))
  end)

  it("is a function of one number, in every family that has the key", function()
    for _, model in ipairs { "gpt2 {", "mpt {", 'mpt { ffn = "mptglu", ', "llama {", "qwen2 {", "qwen3 {", "mistral {", "ministral3 {",
      "gemma2 {", "gemma3 {", "olmo2 {", "olmo3 {", "smollm3 {", "phi3 {", "granite {" } do
      local made = activation(("r.model = t.model.%s activation = %s }"):format(model, kSilu))
      expect(nodes_of(made)).to_equal "input sigmoid mul"
      expect(made.code.at).to_equal "x.lua:6"
    end
  end)

  it("may be assigned, kept in a variable, and computed from plain numbers", function()
    local made = activation('local function leaky(slope)\n  return t.act.define(function(x) return t.where(x:gt(0), x, slope * x) end)\nend\n'
      .. "r.model = t.model.gpt2 {}\nr.model.activation = leaky(0.125)")
    expect(nodes_of(made)).to_contain "where"
    local numbers = {}
    for _, node in ipairs(made.expression.nodes) do numbers[#numbers + 1] = node[1] == "number" and node[2] or nil end
    expect(numbers).to_contain(0.125)
  end)

  it("is replaced by a name in an argument", function()
    expect((activation("r.model = t.model.gpt2 { activation = " .. kSilu .. " }", { "model.activation=relu" }))).to_equal "relu"
  end)

  it("stands in the resolved recipe as what the origin has", function()
    local _, result = activation("r.model = t.model.gpt2 { activation = " .. kSilu .. " }")
    expect(result.lua).to_contain "activation = from.model.activation"
    expect(result.lua).to_contain "t.origin"
  end)

  it("is refused with the place and what to write", function()
    expect(report "r.model = t.model.gpt2 { activation = function(x) return x end }").to_contain
      "expected the name of one, or  t.act.define(function(x) ... end)"
    expect(report 'r.model = t.model.gpt2 { activation = "gelo" }').to_contain 'did you mean "gelu"?'
    expect(report "r.model = t.model.gpt2 { activation = t.act.define(3) }").to_contain "t.act.define expects a function of one number"
    expect(report "r.model = t.model.gpt2 { activation = t.act.define(function(x) end) }").to_contain "the function returns nothing"
    expect(report "r.model = t.model.gpt2 { activation = t.act.define(function(x) return 1 end) }").to_contain "the same number for every x"
    expect(report "r.model = t.model.gpt2 { activation = t.act.define(function(x) return x < 1 and x or 1 end) }").to_contain "x.lua:6"
  end)

  it("is told from one that chooses by if", function()
    local function of(body) return report("r.model = t.model.gpt2 { activation = t.act.define(function(x) " .. body .. " end) }") end
    for _, body in ipairs { "if x:gt(0) then return x end return 0", "if x:gt(0) then return x end" } do
      expect(of(body)).to_contain "depends on whether this comparison holds"
      expect(of(body)).to_contain "t.where(condition, a, b)"
    end
    expect(of "return x, 1").to_contain "the function returns 2 values"
  end)

  it("may use operations on plain numbers before it", function()
    local made = activation "local c = t.sqrt(2 / math.pi)\nr.model = t.model.gpt2 { activation = t.act.define(function(x) return x * c end) }"
    expect(made.expression.nodes[2]).to_equal { "number", math.sqrt(2 / math.pi) }
  end)

  it("takes no reduction", function()
    expect(report 'r.model = t.model.gpt2 { activation = t.act.define(function(x) return x / x:sum("row") end) }').to_contain
      "x.lua:6"
  end)
end)
