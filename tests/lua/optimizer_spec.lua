-- Specs of lua/tycho/maths/optimizer.lua and update.lua: optimizers that a recipe defines.
local native = require "tycho.native"
local session = require "tycho.session"

-- Loads a recipe of a small model; `lines` end with an assignment of r.optimizer.
local function load(lines, arguments)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  local text = 'local t = require "tycho"\nlocal r = t.recipe "x"\n' .. lines .. [[

r.model = t.model.llama { width = 16, heads = 2, kv_heads = 2, layers = 2, ffn_width = 32, vocab_size = 64, tied = true }
r.train_data, r.max_duration = t.data.mds { local_dir = "data" }, "10ba"
return r
]]
  return session.load { file = "recipes/x.lua", arguments = numbered, output = function() end,
    read_file = function(path) return path == "recipes/x.lua" and text or nil, "no " .. path end,
    facts = function() return { steps = 10, total_tokens = 10, tokens_per_step = 1, num_params = 1 } end }
end

local function optimizer(lines, arguments)
  local result = load(lines, arguments)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree.optimizer, result
end

local function report(lines, arguments)
  local result = load(lines, arguments)
  if result.problems == 0 then error("expected a report, the recipe loaded", 2) end
  return result.report
end

-- The lines of a recipe with an optimizer of this update, from line 3 on; more: other arguments of define.
local function defined(body, more)
  return ([[local own = t.optim.define { name = "own", defaults = { betas = { 0.9, 0.95 }, alpha = 2, nesterov = false, rounds = t.integer(3) }, %s
update = function(p, g, s, h)
%s
end }
r.optimizer = own { lr = 1e-3 }]]):format(more or "", body)
end

local function formula(update) return native.expression_text(update.expression) end

describe("an optimizer of the recipe", function()
  it("is a kind with keys, states and expressions", function()
    local made = optimizer(defined("s.m = h.betas[1] * s.m + g\nreturn p - h.lr * s.m", 'state = { m = "like" },'))
    expect(made.kind).to_equal "own"
    expect(made.base).to_equal "defined"
    expect(made.lr).to_equal(1e-3)
    expect(made.weight_decay).to_equal(0)
    expect(made.alpha).to_equal(2)
    expect(#made.updates).to_equal(2)
    expect(made.updates[1].states[1].name).to_equal "m"
    expect(made.updates[1].shape).to_equal(nil)
    expect(formula(made.updates[1])).to_equal "p = p - h.lr * (h.betas.1 * s.m + g)\ns.m = h.betas.1 * s.m + g\n"
    expect(made.code.at).to_equal "recipes/x.lua:4"
  end)

  it("tells the engine the limits of its numbers, for commands of a run", function()
    local made = optimizer([[local own = t.optim.define { name = "own", defaults = { beta = t.number { default = 0.9, min = 0, below = 1 },
      gammas = t.list { t.number { above = 0 }, default = { 1, 2 } }, free = 3, rounds = t.integer { default = 2, min = 1 },
      weight_decay = t.number { default = 0.1, min = 0 }, left = t.number { optional = true, min = 0 } },
      update = function(p, g, s, h) return p - h.beta * h.gammas[2] * g end }
r.optimizer = own { lr = 1e-3 }]])
    expect(made.number_limits).to_equal { { name = "beta", min = 0, max = 1, max_exclusive = true }, { name = "gammas", min = 0, min_exclusive = true } }
    expect(report(defined "return p" .. "\nr.optimizer.number_limits = {}")).to_contain "number_limits"
  end)

  it("has state that begins with a number", function()
    local states = optimizer(defined("s.m = g\nreturn p", 'state = { m = { "like", init = 1 }, n = { "scalar", init = -0.5 }, z = "like" },')).updates[1].states
    expect(states[1].init).to_equal(1)
    expect(states[1].shape).to_equal(nil)
    expect(states[2].scalar).to_equal(true)
    expect(states[2].init).to_equal(-0.5)
    expect(states[3].init).to_equal(nil)
  end)

  it("has state that begins with drawn numbers", function()
    local function first(init, lines)
      local state = 'state = { m = { "like", init = ' .. init .. " } },"
      return optimizer((lines or "") .. defined("s.m = g\nreturn p", state)).updates
    end
    local function formula_of(init, lines) return native.expression_text(first(init, lines)[1].states[1].init) end
    expect(formula_of "t.init.normal { std = 0.5 }").to_equal "value = normal * 0.5\n"
    expect(formula_of "t.init.cut_normal {}").to_equal "value = cut_normal\n"
    expect(formula_of "t.init.uniform { low = -1, high = 3 }").to_equal "value = -1 + 4 * uniform\n"
    expect(formula_of("small", "local small = t.init.define(function(x) return x.normal * 0.25 end)\n")).to_equal "value = normal * 0.25\n"
    expect(#first "t.init.normal { std = 0.5 }").to_equal(2)
    expect(#first "t.init.define(function(x, p) return x.normal / p.rows end)" > 2).to_equal(true)
    local kinds = optimizer(defined("s.m = t.mm(s.m, s.m)\nreturn p", [[state = function(p)
      return { m = { p.rows, p.rows, init = t.init.define(function(x) return x.normal / p.rows end) } }
    end,]]))
    expect(#kinds.updates > 2).to_equal(true)
    expect(kinds.updates[1].states[1].init.outputs[1].name).to_equal "value"
  end)

  it("has keys that arguments set and that are checked", function()
    local lines = defined "return p - h.lr * h.alpha * g"
    expect(optimizer(lines, { "optimizer.alpha=7", "optimizer.lr=0.5", "optimizer.betas=[0.8,0.9]" }).alpha).to_equal(7)
    expect(report(lines, { "optimizer.lr=0" })).to_contain "expected number > 0"
    expect(report(lines, { "optimizer.weight_decay=-1" })).to_contain "expected number >= 0"
    expect(report(lines, { "optimizer.alhpa=7" })).to_contain "did you mean  optimizer.alpha  (number, default 2; of own)?"
    expect(report((lines:gsub("lr = 1e%-3", "alpha = 3")))).to_contain "optimizer.lr is required"
  end)

  it("unrolls by plain hyperparameters and keeps numbers as inputs", function()
    local body = "for _ = 1, h.rounds do g = g * h.alpha end\nif h.nesterov then g = -g end\nreturn p - g"
    expect(formula(optimizer(defined(body), { "optimizer.rounds=2", "optimizer.nesterov=true" }).updates[1]))
      .to_equal "p = p - -(g * h.alpha * h.alpha)\n"
  end)

  it("reads lists and tables of its arguments as plain ones", function()
    local whole = "p = p - (h.betas.1 * g + h.betas.2 * g)\n"
    for _, body in ipairs { "local x\nfor _, b in ipairs(h.betas) do x = x and x + b * g or b * g end\nreturn p - x",
      "local x\nfor i = 1, #h.betas do x = x and x + h.betas[i] * g or h.betas[i] * g end\nreturn p - x",
      "local x\nfor _, b in pairs(h.betas) do x = x and x + b * g or b * g end\nreturn p - x",
      "local x\nfor _, b in next, h.betas do x = x and x + b * g or b * g end\nreturn p - x",
      "local a, b = unpack(h.betas)\nreturn p - (a * g + b * g)", "return p - (rawget(h.betas, 1) * g + select(2, unpack(h.betas)) * g)",
      "for name, list in pairs(h) do if name == 'betas' then return p - (list[1] * g + list[2] * g) end end",
      "return p - (rawget(h, 'betas')[1] * g + h.betas[2] * g)" } do
      expect(formula(optimizer(defined(body)).updates[1])).to_equal(whole)
    end
    expect(formula(optimizer(defined("return p - #h.betas * g")).updates[1])).to_equal "p = p - 2 * g\n"
    local state = 'state = { a = "like", b = "like" },'
    expect(formula(optimizer(defined("for name, x in pairs(s) do s[name] = x * 2 end\nreturn p", state)).updates[1]))
      .to_equal "p = p\ns.a = s.a * 2\ns.b = s.b * 2\n"
    expect(formula(optimizer(defined("local x = 0\nfor _, m in pairs { p, g } do x = x + m end\nreturn x")).updates[1])).to_equal "p = 0 + p + g\n"
    local names = optimizer(defined("return p", "state = function(p, h) local out = {} for i in ipairs(h.betas) do out['m' .. i] = 'like' end return out end,"))
    expect(#names.updates[1].states).to_equal(2)
    expect(formula(optimizer(defined("s.z = g\nreturn p", [[state = { z = "like" },
      eval_weights = function(p, s, h) for _, b in ipairs(h.betas) do for _, z in pairs(s) do p = p + b * z end end return p end,]])).updates[1]))
      .to_contain "s.z = g"
  end)

  it("has nothing where an optional number is null", function()
    local lines = [[local own = t.optim.define { name = "own", defaults = { limit = t.number { optional = true } },
update = function(p, g, s, h) if h.limit then g = t.clamp(g, -h.limit, h.limit) end return p - g end }
r.optimizer = own { lr = 1e-3 }]]
    expect(formula(optimizer(lines).updates[1])).to_equal "p = p - g\n"
    expect(formula(optimizer(lines, { "optimizer.limit=2" }).updates[1])).to_equal "p = p - clamp(g, -h.limit, h.limit)\n"
  end)

  it("has help with an example that loads, as other definitions have", function()
    local defines = require("tycho.maths.stubs").defines
    expect(#optimizer("local own = " .. defines.optim[3] .. "\nr.optimizer = own { lr = 1e-3 }").updates > 0).to_equal(true)
    for _, namespace in ipairs { "loss", "init" } do optimizer("r.optimizer = t.optim.adamw { lr = 1e-3 }\n" .. defines[namespace][3]) end
  end)

  it("is refused where a result has another shape than what it replaces, at its line", function()
    local states = 'state = { all = "like", r = "row", m = { 3, 5 }, n = "scalar" },'
    for body, said in pairs {
      ["s.r = g * 2"] = { 5, "s.r: expected [64, 1], got [64, 16]" }, ["s.m = g"] = { 6, "s.m: expected [3, 5], got [64, 16]" },
      ["s.m = p - s.m:sum('matrix')"] = { 5, "s.m: expected [3, 5], got [64, 16]" }, ["s.n = g"] = { 6, "s.n: expected one number, got [64, 16]" },
      ["s.all = g:sum('row')"] = { 5, "s.all: expected [64, 16], got [64, 1]" }, ["s.r = h.step"] = { 6, "s.r: expected [64, 1], got one number" },
      ["p = g:mean('column')"] = { 5, "the new p: expected [64, 16], got [1, 16]" },
    } do
      expect(report(defined(body .. "\nreturn p", states))).to_contain(said[2])
      expect(report(defined(body .. "\nreturn p", states))).to_contain(("recipes/x.lua:%d"):format(said[1]))
    end
    local made = optimizer(defined("s.all = 0\ns.n = 2\ns.r = g:sum('row') + s.n\ns.m = 0 * s.m + 1\nreturn p - g:sum('matrix')", states))
    expect(#made.updates > 1).to_equal(true)
    expect(report(defined("s.all = t.every(0, function() return g end, s.all)\nreturn p", states))).to_contain "t.every expects a whole number of steps from 1 on, got 0"
  end)

  it("is traced once for each shape where shapes matter", function()
    local made = optimizer(defined("return p - h.lr * g / t.sqrt(g:mean('row')) * (p.rows / p.columns)"))
    local seen = {}
    for _, one in ipairs(made.updates) do
      expect(one.whole).to_equal(true)
      seen[table.concat(one.shape, "x") .. (one.hidden and " hidden" or "")] = true
    end
    for _, shape in ipairs { "64x16", "16", "16x16 hidden", "32x16 hidden", "16x32 hidden" } do expect(seen[shape]).to_equal(true) end
  end)

  it("has other state for other parameters", function()
    local made = optimizer(defined("if p.hidden_matrix then s.rows = s.rows + g:sum('row') end\ns.all = g\ns.n = s.n + 1\nreturn p",
      'state = function(p) return { all = "like", n = "scalar", rows = p.hidden_matrix and "row" or nil } end,'))
    local names = {}
    for _, one in ipairs(made.updates) do
      for _, state in ipairs(one.states) do names[(one.hidden and "hidden " or "") .. state.name] = state.shape and #state.shape or state.scalar or 0 end
    end
    expect(names).to_equal { ["hidden all"] = 0, ["hidden n"] = true, ["hidden rows"] = 2, all = 0, n = true }
  end)

  it("evaluates other weights than it trains", function()
    local made = optimizer(defined("s.z = g\nreturn p", 'state = { z = "like" }, eval_weights = function(p, s, h) return p + h.alpha * s.z end,'))
    expect(native.expression_text(made.updates[1].eval_weights)).to_equal "p = p + h.alpha * s.z\n"
    expect(report(defined("return p", 'state = { z = "like" }, eval_weights = function(p, s, h) s.z = p return p end,')))
      .to_contain "s.z cannot be assigned here"
  end)

  it("may have a learning rate of its own", function()
    local made = optimizer [[local own = t.optim.define { name = "own", defaults = { lr = 0.25, weight_decay = 0.1 },
update = function(p, g, s, h) return p - h.lr * g end }
r.optimizer = own {}]]
    expect(made.lr).to_equal(0.25)
    expect(made.weight_decay).to_equal(0.1)
  end)
end)

describe("what is wrong with an optimizer", function()
  it("is named at its line", function()
    for body, said in pairs { ["return p - h.lrr * g"] = "recipes/x.lua:5:14: no h.lrr", ["return p - s.m"] = "no s.m", ["s.m = g\nreturn p"] = "no s.m",
      ["h.lr = 1\nreturn p"] = "h.lr cannot be assigned", ["p = p - g"] = "update of own returned nothing", ["if g:gt(0) then p = -p end\nreturn p"] = "recipes/x.lua:5",
      ["return p - h.betas[3] * g"] = "no h.betas.3",
      ["table.sort(h.betas, function() return false end)\ntable.insert(h.betas, 1)\nreturn p"] = "recipes/x.lua:5:14: h.betas was changed by the function",
      ["h.betas[1] = nil\nreturn p"] = "h.betas was changed", ["h.betas[4] = 1\nreturn p"] = "h.betas.4 cannot be assigned here",
      ["rawset(h, 'lr', 1)\nreturn p"] = "h.lr cannot be assigned", ["return p, g"] = "recipes/x.lua:5:1: the function returns 2 values, expected one",
      ["if g:gt(0) then return p end"] = "depends on whether this comparison holds",
      ["for _ = 1, h.alpha do p = p * 2 end\nreturn p"] = "recipes/x.lua:5: 'for' limit must be a number",
      ["return t.every(h.alpha, function() return p end, g)"] = "t.every expects a whole number of steps, got h.alpha",
      ["return p * p.nam"] = "there are  p.columns, p.hidden_matrix, p.rows", ["return p * p.row"] = "did you mean  p.rows?",
      ["return p * g.rows"] = "did you mean  p.rows?", ["return t.clamp(p, 1, -1)"] = "t.clamp(x, low, high) expects low <= high, got 1 and -1",
    } do
      expect(report(defined(body))).to_contain(said)
    end
  end)

  it("is a state that is taken away or holds no number", function()
    local state = 'state = { m = "like" },'
    for body, said in pairs { ["s.m = nil\nreturn p"] = "recipes/x.lua:5:3: s.m = nil: expected a number or a symbol",
      ["local function next_m(m) m = m * 2 end\ns.m = next_m(s.m)\nreturn p"] = "recipes/x.lua:6:16: s.m = nil", ["s.m = {}\nreturn p"] = "s.m = ",
      ["rawset(s, 'm', nil)\nreturn p"] = "s.m = nil: expected" } do
      expect(report(defined(body, state))).to_contain(said)
    end
    expect(report(defined("s.n = (g * g):sum('matrix')\nreturn p", 'state = { n = "scalar" },'))).to_contain "write  state = { n = { 1, 1 } }"
  end)

  it("is a number where the function needs a whole one, with the field to write", function()
    local advice = "write  alpha = t.integer { default = 2 }  in defaults: h.alpha is a plain number then"
    optimizer(defined("return t.every({ from = 2 }, function() return p end, g)"))
    for _, body in ipairs { "for _ = 1, h.alpha do p = p * 2 end\nreturn p", "return t.every(h.alpha, function() return p end, g)",
      "return p * #('x'):rep(h.alpha)" } do
      expect(report(defined(body))).to_contain(advice)
    end
  end)

  it("is a kind of state, or a function of states, at its line", function()
    expect(report(defined("return p", 'state = {\nm = "lik" },'))).to_contain 'recipes/x.lua:4:1: state.m: expected "like"'
    expect(report(defined("return p", 'state = {\nm = { "like", init = "p" } },'))).to_contain "recipes/x.lua:4:1: state.m.init: expected a finite"
    expect(report(defined("return p", 'state = {\n"like" },'))).to_contain "recipes/x.lua:"
    expect(report(defined("return p", 'state = function(p)\nreturn { m = "lik" } end,'))).to_contain 'recipes/x.lua:4:10: state.m: expected "like"'
    expect(report(defined("return p", 'state = function(p)\nlocal _ = p end,'))).to_contain "recipes/x.lua:3:"
    expect(report(defined("p = p - g"))).to_contain "recipes/x.lua:4"
  end)

  it("is a reduction in eval_weights, at its line", function()
    local said = report(defined("return p", 'eval_weights = function(p)\nreturn p / p:sum("row") end,'))
    expect(report(defined("return p", 'state = { r = "row" }, eval_weights = function(p, s)\nreturn p * s.r end,'))).to_contain
      "recipes/x.lua:4:14: eval_weights works on elements, and s.r is [64, 1]"
    expect(report(defined("s.n = g:sum('matrix')\nreturn p", 'state = { n = { 1, 1 } }, eval_weights = function(p, s)\nreturn p * s.n end,'))).to_contain "s.n is [1, 1]"
    local made = optimizer(defined("s.r = g:sum('row')\ns.m = g\nreturn p", 'state = { r = "row", m = "like" }, eval_weights = function(p, s)\nreturn p * s.m end,'))
    expect(native.expression_text(made.updates[1].eval_weights)).to_equal "p = p * s.m\n"
    expect(said).to_contain "recipes/x.lua:4:14: eval_weights works on elements: it cannot reduce"
  end)

  it("is named in the table", function()
    local function define(given) return report("local own = t.optim.define " .. given .. "\nr.optimizer = own { lr = 1 }") end
    expect(define '{ name = "x" }').to_contain "t.optim.define expects update = function(p, g, s, h) ... end"
    expect(define '{ name = "x", update = 3 }').to_contain "t.optim.define expects update = function"
    expect(define '{ name = "x", updat = 3 }').to_contain "did you mean  update?"
    expect(define '{ name = "adamw", update = function(p) return p end }').to_contain "built in"
    expect(define '{ name = "a b", update = function(p) return p end }').to_contain "name: expected letters"
    expect(define '{ name = "x", state = { m = "likes" }, update = function(p) return p end }').to_contain 'state.m: expected "like"'
    expect(define '{ name = "x", state = { m = { "like", init = "p" } }, update = function(p) return p end }').to_contain
      "state.m.init: expected a finite number"
    expect(define '{ name = "x", state = { m = { "like", init = t.init.normal { sd = 1 } } }, update = function(p) return p end }').to_contain
      "t.init.normal has no sd"
    expect(define '{ name = "x", state = { m = { "like", init = t.init.uniform { low = "a" } } }, update = function(p) return p end }').to_contain
      "t.init.uniform.low: expected a finite number"
    local function init(value) return define('{ name = "x", state = { m = { "like", init = ' .. value .. ' } }, update = function(p) return p end }') end
    expect(init "t.init.normal { std = -1 }").to_contain "t.init.normal.std: expected a number >= 0, got -1"
    expect(init "t.init.uniform { low = 2 }").to_contain "t.init.uniform.low: expected low <= high"
    expect(init "t.init.normal { sd = 1 }").to_contain "did you mean  std?"
    expect(define '{ name = "x", state = { m = { "like", init = t.init.family {} } }, update = function(p) return p end }').to_contain
      "is what models begin with"
    expect(define '{ name = "x", state = { m = { "like", init = t.init.define(function(x) return x.row end) } }, update = function(p) return p end }')
      .to_contain "no x.row"
    expect(define '{ name = "x", state = { m = { 2, 0 } }, update = function(p) return p end }').to_contain "state.m: expected"
    expect(define '{ name = "x", defaults = { step = 1 }, update = function(p) return p end }').to_contain "h.step is the number of the step"
    expect(define '{ name = "x", defaults = { lr = "fast" }, update = function(p) return p end }').to_contain "lr: expected number > 0"
    expect(define '{ name = "x", defaults = { a = function() end }, update = function(p) return p end }').to_contain "defaults.a"
    expect(report 'r.optimizer = t.component { kind = "optimizer", name = "x" }').to_contain "write  t.optim.define {"
    expect(report "r.optimizer = function(p, g) return p - g end").to_contain "write  t.optim.define {"
    expect(define '(3)').to_contain "t.optim.define expects a table"
  end)
end)
