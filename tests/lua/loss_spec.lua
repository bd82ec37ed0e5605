-- Specs of t.loss.define: losses as functions of a token, their keys, their expressions, and what is said of wrong ones.
local session = require "tycho.session"

local kHead = 'local t = require "tycho"\nlocal r = t.recipe "x"\n'
local kNeeds = 'r.model = t.model.llama {}\nr.optimizer = t.optim.adamw { lr = 1e-3 }\nr.max_duration = "10ba"\n'
  .. 'r.train_data = t.data.mds { local_dir = "d" }\n'

local kSmoothed = [[
local t = require "tycho"
return t.loss.define {
  name = "smoothed", help = "Label smoothing.", defaults = { epsilon = t.number { default = 0.1, min = 0, below = 1 } },
  terms = function(z, h) return z.lse - (1 - h.epsilon) * z.target - h.epsilon * z.mean end,
}
]]

local function load(lines, arguments, files)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  files = files or {}
  files["x.lua"], files["smoothed.lua"] = kHead .. kNeeds .. lines .. "\nreturn r\n", kSmoothed
  return session.load { file = "x.lua", arguments = numbered, output = function() end,
    read_file = function(path)
      if files[path] then return files[path] end
      return nil, "cannot read " .. path, true
    end }
end

local function loss(...)
  local result = load(...)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree.loss, result
end

-- What is said of lines, the first of which is line 7.
local function report(...)
  local result = load(...)
  if result.problems == 0 then error("expected a report", 2) end
  return result.report
end

local function nodes_of(term)
  local ops = {}
  for i, node in ipairs(term.nodes) do ops[i] = node[1] end
  return table.concat(ops, " ")
end

describe("a loss of the recipe", function()
  it("is the cross-entropy where the recipe says nothing", function()
    expect(loss "").to_equal { kind = "cross_entropy" }
    expect(loss "r.loss = t.loss.cross_entropy {}").to_equal { kind = "cross_entropy" }
  end)

  it("is a function of a token", function()
    local made = loss "r.loss = t.loss.define(function(z) return z.lse - z.target + 1e-4 * z.lse ^ 2 end)"
    expect({ made.kind, made.base }).to_equal { "own", "defined" }
    expect(nodes_of(made.terms.own)).to_contain "sub"
    expect(made.code.at).to_equal "x.lua:7"
  end)

  it("has terms by name, and a kind for each place", function()
    local made = loss [[
local unused = t.loss.define(function(z) return z.lse end)
r.loss = t.loss.define { entropy = function(z) return z.lse - z.target end, z = function(z) return 0.1 * z.lse end }]]
    expect(made.kind).to_equal "own_2"
    expect({ made.terms.entropy ~= nil, made.terms.z ~= nil, made.terms.own }).to_equal { true, true }
  end)

  it("has keys of its own that arguments set", function()
    local made = loss('r.loss = require "smoothed" { epsilon = 0.2 }', { "loss.epsilon=0.3" })
    expect({ made.kind, made.epsilon }).to_equal { "smoothed", 0.3 }
    local numbers = {}
    for _, node in ipairs(made.terms.smoothed.nodes) do
      if node[1] == "number" then numbers[#numbers + 1] = node[2] end
    end
    expect(numbers).to_equal { 0.7, 0.3 }
    expect(report 'r.loss = require "smoothed" { epsilom = 0.2 }').to_contain "epsilon"
    expect(report 'r.loss = require "smoothed" { epsilon = 2 }').to_contain "epsilon"
  end)

  it("reads its keys as plain tables", function()
    local function of(body)
      return (loss('r.loss = t.loss.define { name = "l", defaults = { w = { 0.25, 0.5 }, k = 2 }, terms = function(z, h)\n' .. body .. " end } {}").terms.l)
    end
    for _, body in ipairs { "local x = 0 for _, w in ipairs(h.w) do x = x + w end return x * z.lse", "local a, b = unpack(h.w) return (a + b) * z.lse",
      "return #h.w * 0.375 * z.lse", "local x = 0 for name, w in pairs(h) do if name == 'w' then x = w[1] + w[2] end end return x * z.lse" } do
      expect(nodes_of(of(body))).to_equal "input number mul"
      expect(of(body).nodes[2][2]).to_equal(0.75)
    end
    expect(report('r.loss = t.loss.define { name = "l", defaults = { w = { 1, 2 } }, terms = function(z, h)\nh.w[1] = 3 return z.lse * h.w[1] end } {}'))
      .to_contain "h.w was changed by the function"
  end)

  it("names what a token does not have, at its line", function()
    local said = report "r.loss = t.loss.define(function(z)\nreturn z.lse - z.logits\nend)"
    expect(said).to_contain "x.lua:8"
    expect(said).to_contain "z has lse, max, mean, position, px, target, weight"
    expect(report "r.loss = t.loss.define(function(z) z.lse = 1 return z.target end)").to_contain "z.lse cannot be assigned here"
    expect(report "r.loss = t.loss.define(function(z, h) return z.lse * h.gamma end)").to_contain "the loss has no defaults"
  end)

  it("refuses what is no function, and branches on symbols", function()
    expect(report "r.loss = t.loss.define(3)").to_contain "t.loss.define expects a function"
    expect(report "r.loss = t.loss.define {}").to_contain "expected a function, or a table of functions"
    expect(report "r.loss = t.loss.define { a = 1 }").to_contain "a: "
    expect(report "r.loss = t.loss.define { terms = function(z) return z.lse end }").to_contain "needs a name"
    expect(report "r.loss = t.loss.define { name = 'a', term = 1, terms = function(z) return z.lse end }").to_contain "terms"
    expect(report "r.loss = t.loss.define(function(z) if z.lse:gt(1) then return z.lse end return z.target end)").to_contain "t.where"
    expect(report "r.loss = t.loss.define(function(z) return z.lse - z.targt end)").to_contain "did you mean  z.target?"
    expect(report "r.loss = t.loss.define(function(z)\nreturn 1 end)").to_contain "x.lua:8:1: the loss is the same number for every token"
    loss "r.loss = t.loss.define { a = function() return 0 end, b = function(z) return z.lse - z.target end }"
    expect(report "r.loss = t.loss.define(function(z) return z.lse, z.target end)").to_contain "the function returns 2 values"
    expect(report "r.loss = t.loss.define(function(z) if z.lse:gt(0) then return z.lse end end)").to_contain "depends on whether this comparison holds"
    expect(report "r.loss = function(z) return z.lse end").to_contain "write  r.loss = t.loss.define(function(z)"
    expect(report "r.loss = t.loss.define(function() end)").to_contain "the function returns nothing: a loss is a number for each token"
    expect(report "r.loss = t.loss.define(function(z) return z.lse:gt(0) end)").to_contain "x.lua:7"
  end)
end)
