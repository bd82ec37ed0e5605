-- Specs of t.init.define: initial values as functions of drawn numbers and of a matrix, and what is said of wrong ones.
local session = require "tycho.session"

local kHead = 'local t = require "tycho"\nlocal r = t.recipe "x"\n'
local kNeeds = 'r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.max_duration = "10ba"\nr.train_data = t.data.mds { local_dir = "d" }\n'
local kLlama = "r.model = t.model.llama { width = 32, layers = 3, heads = 2, ffn_width = 48, vocab_size = 64 }\n"

local function load(lines)
  return session.load { file = "x.lua", arguments = {}, output = function() end,
    read_file = function(path)
      if path == "x.lua" then return kHead .. kNeeds .. lines .. "\nreturn r\n" end
      return nil, "cannot read " .. path, true
    end }
end

local function init(lines)
  local result = load(lines)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree.init, result
end

-- What is said of lines, the first of which is line 6.
local function report(lines)
  local result = load(lines)
  if result.problems == 0 then error("expected a report", 2) end
  return result.report
end

-- "embedding 0-0, q 1-3 = input ..." for each formula.
local function formulas_of(made)
  local out = {}
  for i, formula in ipairs(made.formulas) do
    local of, ops = {}, {}
    for k, range in ipairs(formula.of) do of[k] = ("%s %d-%d"):format(range.role, range.first, range.last) end
    for k, one in ipairs(formula.expression.nodes) do ops[k] = one[1] == "number" and tostring(one[2]) or one[1] end
    out[i] = table.concat(of, ", ") .. " = " .. table.concat(ops, " ")
  end
  return table.concat(out, "\n")
end

describe("initial values of the recipe", function()
  it("are those of the family unless the recipe says otherwise", function()
    expect(init(kLlama).kind).to_equal "family"
  end)

  it("are one formula for all matrices that the function does not tell apart", function()
    local made = init(kLlama .. "r.init = t.init.define(function(x) return x.normal * 0.5 end)")
    expect(#made.formulas).to_equal(1)
    expect(formulas_of(made)).to_contain "embedding 0-0, q 1-3, k 1-3, v 1-3, out 1-3, gate 1-3, up 1-3, down 1-3, head 4-4 = "
    expect(formulas_of(made)).to_contain "0.5 mul"
    expect(made.code.at).to_equal "x.lua:7"
  end)

  it("are plain Lua of the matrix: roles, layers, sizes", function()
    local made = init(kLlama .. [[
r.init = t.init.define(function(x, p)
  if p.role == "embedding" then return x.uniform - 0.5 end
  if p.residual then return x.normal / math.sqrt(2 * p.layers) end
  if p.role == "head" then return 0 end
  return x.cut_normal / math.sqrt(p.fan_in)
end)]])
    local text = formulas_of(made)
    expect(#made.formulas).to_equal(4)
    expect(text).to_contain "out 1-3, down 1-3 = "
    expect(text).to_contain "q 1-3, k 1-3, v 1-3, gate 1-3, up 1-3 = "
    expect(text).to_contain "head 4-4 = 0"
  end)

  it("may differ by layer", function()
    local made = init(kLlama .. "r.init = t.init.define(function(x, p) return x.normal / (1 + p.layer) end)")
    expect(#made.formulas).to_equal(5)
    expect(formulas_of(made)).to_contain "q 2-2, k 2-2, v 2-2, out 2-2, gate 2-2, up 2-2, down 2-2 = "
  end)

  it("are traced once for layers that differ in numbers, and again where a layer does something else", function()
    local made = init(kLlama .. [[
r.init = t.init.define(function(x, p)
  if p.role == "q" then return x.normal * p.layer end
  if p.role == "down" and p.layer == 2 then return x.uniform - 1 end
  return x.normal * (1 / (3 + p.layer)) + p.layers
end)]])
    local text = formulas_of(made)
    expect(text).to_contain "q 1-1 = input"
    expect((text:match "q 1%-1 = ([^\n]*)"):find("mul", 1, true)).to_be_nil()
    expect(text).to_contain "q 2-2 = input 2 mul"
    expect(text).to_contain "down 2-2 = input 1 sub"
    for layer = 0, 4 do expect(text).to_contain(("input %s mul 3 add"):format(tostring(1 / (3 + layer)))) end
  end)

  it("know inputs from outputs where matrices are stored the other way", function()
    for _, model in ipairs { "gpt2 { ffn_width = 48, ", "llama { ffn_width = 48, kv_heads = 2, tied = true, " } do
      local made = init("r.model = t.model." .. model .. [[width = 32, layers = 2, heads = 2, vocab_size = 64 }
r.init = t.init.define(function(x, p) return p.role == "down" and p.fan_in == 48 and p.fan_out == 32 and x.normal or 0 end)]])
      expect(formulas_of(made)).to_contain "down 1-2 = input"
    end
  end)

  it("are functions of every family's matrices", function()
    for _, model in ipairs { "llama", "qwen2", "qwen3", "mistral", "ministral3", "gemma2", "gemma3", "olmo2", "olmo3", "smollm3", "phi3",
      "granite", "gpt2", "mpt" } do
      local made = init(("r.model = t.model.%s { width = 64, layers = 2, heads = 2 }\n"):format(model)
        .. 'r.init = t.init.define(function(x, p) return p.role == "other" and 1 or x.normal end)')
      expect((formulas_of(made):find("= 1", 1, true))).to_be_nil()
    end
  end)

  it("are another formula when the model is another", function()
    local made = init(kLlama .. "r.init = t.init.define(function(x, p) return x.normal * p.rows end)\nr.model.vocab_size = 128")
    expect(formulas_of(made)).to_contain "embedding 0-0, head 4-4 = input 128 mul"
  end)

  it("are refused with the place and what to write", function()
    local function of(body) return report(kLlama .. "r.init = t.init.define(" .. body .. ")") end
    expect(of "3").to_contain "t.init.define expects a function of drawn numbers and of a matrix"
    expect(of "function(x, p) if p.residual then return x.normal end end").to_contain
      "the function returns nothing for the embedding matrix of layer 0, 64 x 32"
    expect(of "function(x, p) if p.residual then return x.normal end end").to_contain "x.lua:7"
    expect(of "function(x) return x.gauss end").to_contain "x has cut_normal, normal, uniform"
    expect(of "function(x, p) return x.normal * p.width end").to_contain "p has columns, fan_in, fan_out"
    expect(report(kLlama .. "r.init = t.init.normal { std = 0.02 }")).to_contain "write  r.init = t.init.define(function(x, p)"
    expect(report(kLlama .. "r.init = function(x) return x.normal end")).to_contain "write  r.init = t.init.define(function(x, p)"
    expect(of "function(x) return x.normel end").to_contain "did you mean  x.normal?"
    expect(of "function(x, p) return x.normal * p.fanin end").to_contain "did you mean  p.fan_in?"
    expect(of "function(x) return x.normal, 1 end").to_contain "the function returns 2 values"
    expect(of "function(x, p) p.rows = 3 return x.normal end").to_contain "p.rows cannot be assigned here"
    expect(of "function(x) return x.normal < 1 and x.normal or 1 end").to_contain "x.lua:7"
    expect(of 'function(x) return x.normal / x.normal:sum("row") end').to_contain "x.lua:7"
    expect(of 'function(x) return "0.02" end').to_contain "expected a number or a symbol"
    expect(report(kLlama .. "local kept\nr.init = t.init.define(function(x) local now = kept or x.normal; kept = x.normal; return now end)")).to_contain
      "a symbol was kept and is used later"
    expect(report(kLlama .. "r.init = function(x) return x.normal end")).to_contain "init"
  end)
end)
