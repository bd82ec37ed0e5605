-- Specs of lua/tycho/own: components of a recipe or module with fields that are checked as those of built-in ones.
local native = require "tycho.native"
local own_kinds = require "tycho.own.kinds"
local schema = require "tycho.schema"
local session = require "tycho.session"

local kHead = 'local t = require "tycho"\nlocal r = t.recipe "x"\n'
local kNeeds = 'r.model = t.model.llama {}\nr.optimizer = t.optim.adamw { lr = 1e-3 }\nr.max_duration = "10ba"\n'
  .. 'r.train_data = t.data.mds { local_dir = "d" }\n'

local kPlateau = [[
local t = require "tycho"
return t.component {
  name = "plateau", kind = "control", help = "Halves the learning rate when the loss stays.",
  fields = {
    patience = t.integer { default = 3, min = 1, help = "Steps without a better loss." },
    factor = t.number { default = 0.5, above = 0, max = 1 },
    window = t.duration "10ba",
    mode = t.choice { "min", "max", default = "min" },
    names = t.list { t.string {}, default = {} },
    note = t.string { optional = true },
  },
  state = { best = 1e9, worse = 0 },
  batch_end = function(ctx, st, cfg)
    st.worse = ctx.loss < st.best and 0 or st.worse + 1
    st.best = math.min(st.best, ctx.loss)
    if st.worse >= cfg.patience then ctx.cmd.scale_lr(cfg.factor) end
  end,
}
]]

local function load(lines, arguments, files)
  local numbered = {}
  for i, argument in ipairs(arguments or {}) do numbered[i] = { argument = i + 1, text = argument } end
  files = files or {}
  files["x.lua"], files["plateau.lua"] = kHead .. kNeeds .. lines .. "\nreturn r\n", files["plateau.lua"] or kPlateau
  local printed = {}
  local result = session.load { file = "x.lua", arguments = numbered, output = function(text) printed[#printed + 1] = text end,
    read_file = function(path)
      if files[path] then return files[path] end
      return nil, "cannot read " .. path, true
    end }
  return result, table.concat(printed)
end

local function tree(...)
  local result, printed = load(...)
  if result.problems > 0 then error(result.report, 2) end
  return result.tree, result, printed
end

local function report(...)
  local result = load(...)
  if result.problems == 0 then error("expected a report", 2) end
  return result.report
end

local function has(text, ...)
  for _, part in ipairs { ... } do
    if not text:find(part, 1, true) then error(("expected %q in\n%s"):format(part, text), 2) end
  end
end

local kUse = 'local plateau = require "plateau"\nr.callbacks.p = plateau { patience = 5, every = "2ba" }'

describe("a component", function()
  it("is a kind with fields, defaults and options", function()
    local made = tree(kUse).callbacks.p
    expect(made.kind).to_equal "plateau"
    expect(made.base).to_equal "control"
    expect({ made.patience, made.factor, made.window, made.mode, made.every }).to_equal { 5, 0.5, "10ba", "min", "2ba" }
    expect(made.note).to_equal(native.null)
    expect(made.state.worse).to_equal(0)
    expect(made.batch_end.at).to_equal "plateau.lua:13"
  end)

  it("stands in t.cb once it is defined, and arguments choose it and its fields", function()
    local made, _, printed = tree('require "plateau"\nprint "once"\nr.callbacks.p = t.cb.plateau {}', { "callbacks.p.patience=7", "callbacks.p.names=[a,b]" })
    expect({ made.callbacks.p.patience, made.callbacks.p.names[2] }).to_equal { 7, "b" }
    expect(printed).to_equal "once\n"
    made = tree('require "plateau"', { "+callbacks.q=cb.plateau{factor=0.25, window=3ba}" })
    expect({ made.callbacks.q.factor, made.callbacks.q.window }).to_equal { 0.25, "3ba" }
  end)

  it("refuses unknown fields and wrong values at their place", function()
    has(report 'local plateau = require "plateau"\nr.callbacks.p = plateau { patiense = 5 }',
      "x.lua:8:27", "unknown key  callbacks.p.patiense (plateau)", "did you mean  patience?")
    has(report 'local plateau = require "plateau"\nr.callbacks.p = plateau {\n  factor = 2,\n}',
      "x.lua:9", "callbacks.p.factor = 2: expected number > 0 and <= 1")
    has(report('require "plateau"\nr.callbacks.p = t.cb.plateau {}', { "callbacks.p.patiense=7" }), "callbacks.p.patiense",
      "did you mean  callbacks.p.patience")
    has(report('require "plateau"\nr.callbacks.p = t.cb.plateau {}', { "callbacks.p.mode=mni" }), 'did you mean "min"')
    has(report 'require "plateau"\nr.callbacks.p = t.cb.plateuu {}', "no t.cb.plateuu", "did you mean  plateau?")
    has(report "r.callbacks.p = t.cb.plateau {}", "no t.cb.plateau", "one of your own, after  require  of its module")
    has(report "r.callbacks.p = t.cb.speed", "call it:  t.cb.speed {}")
    has(report 'r.callbacks.p = require "plateau"', "call it:  t.cb.plateau {}")
    has(report "r.seed = t.number { default = 3 }", "seed = t.number { ... }: expected integer")
  end)

  it("is known to the keys of its session, and to no other", function()
    local own = session.open { quiet = true }
    local before = #schema.all_paths(own.schema)
    expect(schema.index(own.schema)["scheduler.hold_for"]).to_be_nil()
    own_kinds.register(own, { namespace = "sched", base = "fn", name = "held", table = "fields", site = { file = "x.lua", line = 1 },
      fields = { { name = "hold_for", type = "number", default = 1, help = "" } }, definition = function() return {} end })
    expect(schema.index(own.schema)["scheduler.hold_for"].type).to_equal "number"
    expect(#schema.all_paths(own.schema)).to_equal(before + 1)
    expect(schema.index(native.schema)["scheduler.hold_for"]).to_be_nil()
    expect(schema.index(session.open { quiet = true }.schema)["scheduler.hold_for"]).to_be_nil()
  end)

  it("in a file alone is no recipe", function()
    local result = session.load { file = "plateau.lua", files = { ["plateau.lua"] = kPlateau }, only_files = true }
    has(result.report, "the file defines t.cb.plateau and is no recipe", "check a recipe that requires it")
    expect(result.verdict.kind).to_equal "no recipe"
  end)

  it("is the same in the resolved recipe", function()
    local _, result = tree(kUse, { "callbacks.p.patience=7" })
    has(result.lua, "t.cb.plateau {", "patience = 7", "t.origin")
    local places = native.source_places(native.array { "plateau.lua", "x.lua" })
    local again = session.load { file = "recipe.lua", files = { ["recipe.lua"] = result.lua, [places["x.lua"]] = result.sources["x.lua"],
      [places["plateau.lua"]] = result.sources["plateau.lua"] }, only_files = true }
    if again.problems > 0 then error(again.report) end
    expect(again.tree).to_equal(result.tree)
  end)

  it("keeps functions that do the same equal, and its values are part of the recipe", function()
    local a, b = tree(kUse).callbacks.p, tree(kUse, nil, { ["plateau.lua"] = "\n" .. kPlateau }).callbacks.p
    expect(a.batch_end.hash).to_equal(b.batch_end.hash)
    local c = tree(kUse, nil, { ["plateau.lua"] = kPlateau:gsub("or st.worse %+ 1", "or st.worse + 2") }).callbacks.p
    assert(a.batch_end.hash ~= c.batch_end.hash)
  end)

  it("begins with a state that a function makes of its fields", function()
    local of_fields = kPlateau:gsub("state = %b{}", "state = function(cfg) return { left = cfg.patience } end")
    expect(tree(kUse, nil, { ["plateau.lua"] = of_fields }).callbacks.p.state.left).to_equal(5)
    has(report(kUse, nil, { ["plateau.lua"] = kPlateau:gsub("state = %b{}", "state = function(cfg) return { left = cfg.patiense } end") }),
      "plateau.lua:", "unknown key  callbacks.p.patiense", "did you mean  patience")
    local said = report(kUse, nil, { ["plateau.lua"] = kPlateau:gsub("state = %b{}", "state = function(cfg) return { left = cfg.b } end") })
    has(said, "unknown key  callbacks.p.b (plateau)")
    expect(said:find("callbacks.NAME", 1, true)).to_be_nil()
    has(report(kUse, nil, { ["plateau.lua"] = kPlateau:gsub("state = %b{}", "state = function(cfg) return 3 end") }),
      "plateau.lua:12", "state returned no state: expected a table of plain data")
    has(report(kUse, nil, { ["plateau.lua"] = kPlateau:gsub("state = %b{}", "state = { f = print }") }),
      "plateau.lua:12", "expected a table of plain data (numbers, text, true and false), found a function at f")
  end)
end)

-- The report of a definition with these lines.
local function definition(lines) return report("t.component {\n" .. lines .. "\n}") end

describe("a definition of a component that is wrong", function()
  local kEvent = "batch_end = function() end,"

  it("names what is missing or unknown at its line", function()
    has(report "t.component()", "x.lua:7", "t.component expects a table")
    has(definition("help = 'x', " .. kEvent), "x.lua:7", "t.component needs a name", 'write  name = "plateau"')
    has(definition('name = "p",'), "x.lua:8", 't.component "p" has no function', "batch_end = function(ctx, st, cfg) ... end")
    has(definition('name = "p", kind = "schedule",'), "factor = function(s, cfg) return 1 - s.frac end")
    has(definition('name = "p",\nbatch_ends = function() end,'), "x.lua:9", "unknown key  t.component.batch_ends", "did you mean  batch_end?")
    has(definition('name = "p",\nfield = {},\n' .. kEvent), "unknown key  t.component.field", "did you mean  fields?")
    has(definition('name = "p",\nkind = "controll",\n' .. kEvent), "x.lua:9", 'kind = "controll": expected one of', 'did you mean "control"?')
    has(definition('name = "p",\nbatch_end = 3,'), "x.lua:9", "batch_end: expected a function")
    has(definition('name = "p",\nhelp = 3,\n' .. kEvent), "x.lua:9", "help: expected text in quotes, got 3")
    has(definition('name = "p", kind = "schedule", state = {}, factor = function() return 1 end'), "unknown key  t.component.state")
  end)

  it("names a name that cannot be one", function()
    has(definition('name = "a b",\n' .. kEvent), "x.lua:8", "name: expected letters, digits and '_', got \"a b\"")
    has(definition("name = 3,\n" .. kEvent), "name: expected letters, digits and '_', got 3")
    has(definition('name = "speed",\n' .. kEvent), "t.cb.speed is built in", "choose another name")
    has(report('t.component { name = "p", ' .. kEvent .. ' }\nt.component { name = "p", ' .. kEvent .. " }"), "x.lua:8",
      "t.cb.p is defined at x.lua:7 already")
  end)

  local function fields(text) return definition('name = "p",\nfields = {\n' .. text .. "\n},\n" .. kEvent) end

  it("names a field that cannot be one", function()
    has(fields "every = 3", "x.lua:10", "every: a duration needs a unit: 3ba (batches)")
    has(fields "order = t.integer { default = 1.5 }", "default = 1.5: expected integer")
    has(fields "state = 3", "which is used by Tycho itself")
    has(fields "kind = 3", "which names the kind of a component")
    has(fields "['a b'] = 3", "fields: expected names of letters, digits and '_', got \"a b\"")
    has(fields "a = print", "x.lua:10", "fields.a: expected a default or a field such as  t.number")
    has(fields "a = t.required", "t.required, which has no type")
    has(fields "a = t.number", "fields.a: expected a default or a field such as")
    has(fields "a = {}", "fields.a: expected a default or a field such as")
    has(definition('name = "p",\nfields = 3,\n' .. kEvent), "x.lua:9", "fields expects a table of fields")
  end)

  it("names what a declaration cannot say", function()
    has(fields "a = t.number { mni = 3 }", "x.lua:10", "t.number has no option mni", "did you mean  min?")
    has(fields "a = t.number { 3 }", "t.number takes options by name")
    has(fields "a = t.number { default = 3, max = 2 }", "t.number: default = 3: expected number <= 2")
    has(fields 'a = t.number "x"', 't.number: default = "x": expected number')
    has(fields "a = t.number { default = t.null }", "default = t.null: add  optional = true")
    has(fields "a = t.number { default = 1, required = true }", "a required field has no default")
    has(fields "a = t.number { help = 3 }", "help expects text in quotes, got 3")
    has(fields "a = t.number { optional = 1 }", "optional expects true or false, got 1")
    has(fields 'a = t.number { min = "1" }', 'min expects a number, got "1"')
    has(fields "a = t.choice { 1, 2 }", "t.choice expects texts")
    has(fields 'a = t.choice { "x" }', "t.choice expects two texts or more")
    has(fields 'a = t.choice { "x", "x" }', 't.choice names "x" twice')
    has(fields 'a = t.choice { "x", "y", default = "z" }', 't.choice: default = "z": one of  "x"  "y"')
    has(fields "a = t.list {}", "t.list expects one field for its values")
    has(fields "a = t.list { t.list { t.number {} } }", "t.list expects one field for its values")
    has(fields 'a = t.list { t.number {}, default = { 1, "x" } }', "value 2: expected number")
    has(fields "a = t.list { t.number {}, length = 2, default = { 1 } }", "expected a list of 2 x number")
    has(fields 'a = t.duration { units = "ba foo" }', "units: expected some of ba, ep, sp, tok, dur, s, got foo")
    has(fields 'a = t.duration { default = "3s", units = "ba" }', "t.duration: default = \"3s\"")
    has(fields "a = t.duration(3)", "t.duration expects a number with a unit")
  end)
end)

describe("fields of a component", function()
  local function with(fields, given, arguments)
    return 't.component { name = "p", fields = {' .. fields .. "}, batch_end = function() end }\nr.callbacks.p = t.cb.p {" .. given .. "}", arguments
  end

  it("may be defaults alone", function()
    local made = tree(with("a = 1, b = true, c = 'x', d = t.ba(3), e = t.bytes '1MiB', f = { 0.9, 0.95 }", "")).callbacks.p
    expect({ made.a, made.b, made.c, made.d, made.e, made.f[2] }).to_equal { 1, true, "x", "3ba", "1MiB", 0.95 }
    has(report(with("f = { 0.9, 0.95 }", "f = { 1 }")), "expected a list of 2 x number")
  end)

  it("without a default must be set", function()
    has(report(with("a = t.number { help = 'Something.' }", "")), "callbacks.p.a is required and not set: Something.")
    has(report(with("a = t.number {}", "")), "callbacks.p.a is required and not set\n")
    expect(tree(with("a = t.number {}", "a = 2")).callbacks.p.a).to_equal(2)
    expect(tree(with("a = t.number { default = t.required }", "a = 2")).callbacks.p.a).to_equal(2)
  end)

  it("give options other defaults, and leave them as they are", function()
    local made = tree(with("every = t.duration '10ba', on_error = 'warn', limit = t.number { min = 0 }", "limit = 2")).callbacks.p
    expect({ made.every, made.on_error, made.limit, made.order }).to_equal { "10ba", "warn", 2, 0 }
    expect(tree(with("every = t.duration '10ba'", "every = '2tok'")).callbacks.p.every).to_equal "2tok"
    has(report(with("every = t.duration '10ba'", "every = '2s'")), "callbacks.p.every", "got a time")
    has(report(with("every = t.duration {}", "")), "callbacks.p.every is required and not set: Call it for events of a step")
  end)

  it("show their unit and their limits", function()
    has(report(with("a = t.number { above = 0, below = 1, unit = 'ms', default = 0.5 }", "a = 1")), "expected number > 0 and < 1, in ms")
    has(report(with("a = t.integer { multiple_of = 8, default = 8 }", "a = 12")), "write 8 or 16")
  end)
end)

describe("a schedule that is a component", function()
  local kHold = [[
t.component { name = "hold", kind = "schedule", help = "Constant, then a line.", fields = { share = t.number { default = 0.8, min = 0, max = 1 } },
  factor = function(s, cfg)
    if s.frac < cfg.share then return 1 end
    return (1 - s.frac) / (1 - cfg.share)
  end }
r.scheduler = t.sched.hold { share = 0.5 }
]]

  it("is tabulated with its fields", function()
    local made, result = tree(kHold, { "scheduler.share=0.6" })
    expect({ made.scheduler.kind, made.scheduler.base, made.scheduler.name, made.scheduler.share }).to_equal { "hold", "fn", "hold", 0.6 }
    expect({ result.schedule[6], result.schedule[7], result.schedule[9] }).to_equal { 1, 1, (1 - 0.8) / (1 - 0.6) }
  end)

  it("says what is wrong with its values", function()
    has(report((kHold:gsub("return 1 end", "return -1 end"))), "the schedule hold returned -1 at step 0")
    has(report((kHold:gsub("s.frac < cfg.share", "s.frac < cfg.shre"))), "unknown key  scheduler.shre", "did you mean  share")
    has(report((kHold:gsub("share = 0.5", "sharr = 0.5"))), "unknown key  scheduler.sharr (hold)", "did you mean  share  (number >= 0 and <= 1, default 0.8)?")
  end)

  it("may keep state", function()
    local made = tree [[
t.component { name = "drop", kind = "dynamic_schedule", fields = { by = 0.5 }, state = { factor = 1 },
  factor = function(s, st, cfg)
    if s.loss and s.loss > 5 then st.factor = st.factor * cfg.by end
    return st.factor
  end }
r.scheduler = t.sched.drop {}]]
    expect({ made.scheduler.base, made.scheduler.state.factor, made.scheduler.by }).to_equal { "dynamic", 1, 0.5 }
  end)
end)
