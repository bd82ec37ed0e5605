-- Golden texts of error reports: what a person reads when a recipe is wrong.
local fixture = require "fixture"
local session = require "tycho.session"
local report, whole, recipe = fixture.report, fixture.whole, fixture.recipe

local function last(count)
  return ("%d problem%s; nothing was started. `tycho config recipes/x.lua` lists every key."):format(count, count == 1 and "" or "s")
end

describe("a report", function()
  it("shows all problems at once, sorted, each with its line, a caret and what to write", function()
    expect(report(whole [[
r.seq_lem = 6
r.precision = "fp17"
r.max_duration = 4800
r.model = t.model.llama {
  width = 100,
  lyers = 3,
}
r.optimizer = t.optim.adamw { lr = -1, betas = { 0.9, 3 } }
r.ckpt = { evry = "3ba" }]], { "optimizer.lrr=1" })).to_equal(([[
recipes/x.lua:5:3: unknown key  seq_lem
   5 | r.seq_lem = 6
     |   ^^^^^^^ did you mean  seq_len  (integer > 0, default 1024)?
recipes/x.lua:6:15: precision = "fp17": one of  "fp32"  "bf16"
   6 | r.precision = "fp17"
     |               ^^^^^^
recipes/x.lua:7:18: max_duration = 4800: a duration needs a unit: 4800ba (batches), 4800tok (tokens), 4800sp (samples), 4800ep (epochs)
   7 | r.max_duration = 4800
     |                  ^^^^
recipes/x.lua:9:11: model.width = 100: expected integer > 0, a multiple of 8; write 96 or 104
   9 |   width = 100,
     |           ^^^
recipes/x.lua:10:3: unknown key  model.lyers (llama)
  10 |   lyers = 3,
     |   ^^^^^ did you mean  layers  (integer > 0, default 4)?
recipes/x.lua:12:36: optimizer.lr = -1: expected number > 0
  12 | r.optimizer = t.optim.adamw { lr = -1, betas = { 0.9, 3 } }
     |                                    ^^
recipes/x.lua:12:55: optimizer.betas.2 = 3: expected number >= 0 and < 1
  12 | r.optimizer = t.optim.adamw { lr = -1, betas = { 0.9, 3 } }
     |                                                       ^
recipes/x.lua:13:12: unknown key  ckpt.evry
  13 | r.ckpt = { evry = "3ba" }
     |            ^^^^ did you mean  every  (duration in ba, tok, >= 0, default "10ba")?
argument 2  optimizer.lrr=1: unknown key  optimizer.lrr
     | optimizer.lrr=1
     |           ^^^ did you mean  optimizer.lr  (number > 0, required)?
]] .. last(9)))
  end)

  it("names a component that does not exist", function()
    expect(report 'local t = require "tycho"\nlocal o = t.optim.adamww {}').to_equal([[
recipes/x.lua:2:19: no t.optim.adamww
   2 | local o = t.optim.adamww {}
     |                   ^^^^^^ did you mean  adamw?
]] .. last(1))
  end)

  it("names the wrong kind of component", function()
    expect(report(whole "r.optimizer = t.sched.cosine {}")).to_contain "expected t.optim.adamw{}"
  end)

  it("says what is required", function()
    local text = report(recipe "")
    expect(text).to_contain "recipes/x.lua:2:13: model is required and not set: Help of model."
    expect(text).to_contain "write  r.model = t.model.llama{}"
    expect(report(recipe "r.optimizer.lr = 3")).to_contain "choose one above:  r.optimizer = t.optim.adamw{}"
  end)

  it("says that a recipe returned nothing", function()
    expect(report 'local t = require "tycho"\nlocal r = t.recipe "x"\n').to_equal([[
recipes/x.lua:2: the file returned nothing, not a recipe
   2 | local r = t.recipe "x"
     | end it with  return r  where  local r = t.recipe "name"
]] .. last(1))
    expect(report "return {}").to_contain "returned a table, not a recipe"
  end)

  it("explains what is not Lua", function()
    expect(report 'local a = 3\nif a != 3 then end').to_equal([[
recipes/x.lua:2:6: not Lua
   2 | if a != 3 then end
     |      ^^ not equal is "~=" in Lua
]] .. last(1))
    expect(report "local = 3").to_contain "recipes/x.lua:1: not Lua: "
    expect(report "\27LJ\2").to_contain "bytecode"
  end)

  it("keeps what was found before a recipe broke off", function()
    local text = report(whole "r.sed = 3\nlocal a = nil\nlocal b = a.c")
    expect(text).to_contain "recipes/x.lua:5:3: unknown key  sed"
    expect(text).to_contain "recipes/x.lua:7:11: attempt to index local 'a' (a nil value)"
    expect(text).to_contain(last(2))
  end)

  it("has the lines of the file that a recipe was made of, and its name alone where there is no line", function()
    local lua = whole "r.seed = -1\nr.seq_len = 0\nr.precision = 'fp17'"
    local made = { file = "x.yaml", text = "seed: -1\n",
      lines = { [5] = { line = 1, col = 7, len = 2 }, [6] = { line = 0, col = 0, len = 1 }, [7] = { argument = 3, text = "precision=fp17" } } }
    local function load(text)
      return session.load { file = "x.yaml.lua", schema = fixture.schema, facts = fixture.facts, only_files = true, arguments = {},
        files = { ["x.yaml.lua"] = text }, made_from = { ["x.yaml.lua"] = made }, check_tree = function() return {} end }
    end
    local text = load(lua).report
    expect(text).to_contain "x.yaml:1:7: seed = -1: "
    expect(text).to_contain "x.yaml (line 6 of its recipe): seq_len = 0: "
    expect(text).to_contain "argument 3  precision = \"fp17\": "
    expect(text:find("0:0", 1, true)).to_equal(nil)
    expect(text:find(".lua:", 1, true)).to_equal(nil)
    local history = load(whole "r.seed = 1\nr.seq_len = 8\nr.precision = 'fp32'").history
    expect(history.seed[#history.seed].at).to_equal "x.yaml:1"
    expect(history.seq_len[#history.seq_len].at).to_equal "x.yaml"
    expect(history.precision[#history.precision].at).to_equal "argument 3"
  end)

  it("stops at fifty", function()
    local lines = {}
    for i = 1, 60 do lines[i] = "r.k" .. i .. " = 1" end
    local text = report(whole(table.concat(lines, "\n")))
    expect(text).to_contain "... and 10 more"
    expect(text).to_contain(last(60))
  end)

  it("refuses names that would lead out of the run's folder", function()
    expect(report 'local t = require "tycho"\nlocal r = t.recipe "../x"').to_contain "expected a name of letters, digits"
  end)
end)
