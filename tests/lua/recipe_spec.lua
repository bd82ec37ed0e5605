-- Specs of the strict builder: what recipes may write, what they read back, how they extend each other.
local fixture = require "fixture"
local tree, report, whole = fixture.tree, fixture.report, fixture.whole

describe("a recipe", function()
  it("starts from the schema's defaults", function()
    local x = tree(whole())
    expect({ x.seed, x.precision, x.scheduler.kind, x.ckpt.every, x.buffer }).to_equal { 17, "fp32", "constant", "10ba", "64MiB" }
  end)

  it("is called as its recipe unless somebody says otherwise", function()
    expect(tree(whole()).run_name).to_equal "x"
    expect(tree(whole 'r.run_name = "other"').run_name).to_equal "other"
    expect(tree(whole(), { "run_name=1e4" }).run_name).to_equal "1e4"
  end)

  it("takes every type", function()
    local x = tree(whole [[
r.precision, r.seq_len, r.micro_batch = "bf16", 512, "4sp"
r.max_duration = t.ba(50)
r.model = t.model.llama { width = 64, tied = true }
r.scheduler = t.sched.cosine { warmup = "5ba", floor = 0.1 }
r.ckpt = { keep = 2 }
r.tags.owner = "me"
r.buffer = "1MiB"]])
    expect({ x.precision, x.seq_len, x.micro_batch, x.max_duration }).to_equal { "bf16", 512, "4sp", "50ba" }
    expect({ x.model.width, x.model.layers, x.model.tied }).to_equal { 64, 4, true }
    expect({ x.scheduler.kind, x.scheduler.floor, x.ckpt.keep, x.ckpt.every }).to_equal { "cosine", 0.1, 2, "10ba" }
    expect({ x.tags.owner, x.buffer }).to_equal { "me", "1MiB" }
  end)

  it("takes a text for a group that has a key for it", function()
    expect(tree(whole 'r.machine = "h100"').machine).to_equal { name = "h100", gpus = 8 }
    expect(tree(whole 'r.machine = { name = "h100", gpus = 4 }').machine).to_equal { name = "h100", gpus = 4 }
    expect(tree(whole(), { "machine=h200", "machine.gpus=2" }).machine).to_equal { name = "h200", gpus = 2 }
    expect(report(whole 'r.machine = "h100"\nr.machine = 3')).to_contain "expected a table of name, gpus"
    expect(report(whole 'r.ckpt = "often"')).to_contain "expected a table of every, keep"
    expect(report(whole(), { "ckpt=often" })).to_contain "expected a table such as {every=...}"
  end)

  it("reads back what it wrote, with units", function()
    local x = tree(whole [[
r.max_duration = "200ba"
r.ckpt.every = r.max_duration / 4
r.seed = #r.optimizer.betas
r.optimizer.betas[2] = r.optimizer.betas[1]
for key, value in pairs(r.ckpt) do r.tags[key] = tostring(value) end
if r.micro_batch == nil then r.seq_len = 7 end]])
    expect({ x.ckpt.every, x.seed, x.optimizer.betas[2], x.seq_len }).to_equal { "50ba", 2, 0.9, 7 }
    expect(x.tags).to_equal { every = "50ba", keep = "3" }
  end)

  it("merges a component of the same kind and replaces another", function()
    local x = tree(whole [[
r.optimizer = t.optim.adamw { lr = 1, eps = 0.5 }
r.optimizer = t.optim.adamw { lr = 2 }
r.scheduler = t.sched.cosine { floor = 0.5 }
r.scheduler = t.sched.constant { warmup = "3ba" }]])
    expect({ x.optimizer.lr, x.optimizer.eps }).to_equal { 2, 0.5 }
    expect(x.scheduler).to_equal { kind = "constant", warmup = "3ba" }
  end)

  it("sets optional keys to none with t.null, never with nil", function()
    expect(tree(whole 'r.micro_batch = "4sp"\nr.micro_batch = t.null').micro_batch).to_equal(require("tycho.values").null)
    expect(report(whole "r.micro_batch = nil")).to_contain "write t.null for none"
    expect(report(whole "r.seed = t.null")).to_contain "seed = t.null: expected integer >= 0"
  end)

  it("lets optional components be none, set, and none again", function()
    local null = require("tycho.values").null
    expect(tree(whole "").probe).to_equal(null)
    expect(tree(whole 'r.probe = t.probe.text { path = "x" }').probe).to_equal { kind = "text", path = "x", len = 8 }
    expect(tree(whole 'r.probe = t.probe.text { path = "x" }\nr.probe.len = 9').probe.len).to_equal(9)
    expect(tree(whole 'r.probe = t.probe.text { path = "x" }\nr.probe = t.null').probe).to_equal(null)
    expect(tree(whole 'r.probe = t.probe.text { path = "x" }\nr.probe = t.unset').probe).to_equal(null)
    expect(report(whole "r.probe = t.probe.text {}")).to_contain "probe.path is required and not set"
    expect(report(whole 'r.probe = "text"')).to_contain "expected t.probe.text{}"
    expect(report(whole "r.probe = { len = 9 }")).to_contain "expected t.probe.text{}"
  end)

  it("reports values that contain themselves", function()
    expect(report(whole "local x = {}\nx.x = x\nr.tags = x")).to_contain "recipes/x.lua:7"
    expect(report(whole "local x = {}\nx[1] = x\nr.optimizer.betas = x")).to_contain "recipes/x.lua:7"
  end)

  it("knows what it printed", function()
    tree(whole 'print("width", r.model.width, {})')
    expect(fixture.printed).to_equal "width\t256\ttable\n"
  end)
end)

describe("extending", function()
  local base = 'local t = require "tycho"\nlocal r = t.recipe "base"\nr.model = t.model.llama { width = 64 }\n'
    .. 'r.optimizer = t.optim.adamw { lr = t.required, eps = 0.5 }\nr.seq_len = r.model.width * 2\nreturn r\n'

  it("copies the base and leaves it as it was", function()
    local x = tree([[
local base = require "base.small"
local r = base:extend "mine"
r.optimizer.lr = 1
r.model.width = 8
local other = base:extend "other"
r.seed = other.model.width
return r]], {}, { ["recipes/base/small.lua"] = base })
    expect({ x.run_name, x.model.width, x.seed, x.optimizer.eps, x.seq_len }).to_equal { "mine", 8, 64, 0.5, 128 }
  end)

  it("finds files beside the recipe, then under the working folder", function()
    for _, path in ipairs { "recipes/small.lua", "small.lua" } do
      local x = tree('local r = require "./small":extend "mine"\nr.optimizer.lr = 1\nreturn r', {}, { [path] = base })
      expect(x.run_name).to_equal "mine"
    end
  end)

  it("names what the base left open", function()
    expect(report('return (require "base" :extend "mine")', {}, { ["recipes/base.lua"] = base }))
      .to_contain "recipes/base.lua:4:31: optimizer.lr is required and not set"
  end)

  it("tells absent files from broken ones", function()
    expect(report 'local r = require "nothing"').to_contain "looked for recipes/nothing.lua and nothing.lua"
    expect(report('local r = require "broken"', {}, { ["recipes/broken.lua"] = "x = = 3" })).to_contain "recipes/broken.lua:1"
    expect(report('local r = require "loop"', {}, { ["recipes/loop.lua"] = 'local r = require "loop"' }))
      .to_contain "required by itself"
  end)
end)

describe("checks", function()
  it("see the finished recipe, pins included", function()
    local text = whole 'r:check("length", function(c) return c.seq_len < 100, "too long" end)'
    expect(report(text)).to_contain 'recipes/x.lua:5:3: check "length" does not hold: too long'
    expect(tree(text, { "seq_len=50" }).seq_len).to_equal(50)
  end)

  it("see what follows from the recipe", function()
    local text = whole [[r:check("length", function(c)
      return c.total_tokens <= c.steps * 100 and c.tokens_per_step == c.seq_len and c.num_params == 1000, "too long"
    end)]]
    expect(report(text)).to_contain 'check "length" does not hold: too long'
    expect(tree(text, { "seq_len=50" }).seq_len).to_equal(50)
  end)

  it("are left to the run when only the data set can decide them", function()
    local text = whole [[r.max_duration = "2ep"
r:check("length", function(c) return c.total_tokens <= 1, "too long" end)
r:check("width", function(c) return c.model.width < 10, "too wide" end)]]
    local found = report(text)
    expect(found).to_contain "too wide"
    expect(found:find("too long", 1, true)).to_equal(nil)
  end)

  it("name a key that is neither the recipe's nor follows from it", function()
    expect(report(whole 'r:check("odd", function(c) return c.total_steps < 3 end)')).to_contain "total_steps"
  end)

  it("report what they raise", function()
    expect(report(whole 'r:check("odd", function(c) error("no") end)')).to_contain 'check "odd" failed'
  end)

  it("put rules between keys where the value was written", function()
    local text = report(whole "r.model.layers = 5", {}, {}, function()
      return { { path = "model.layers", message = "5 is not a multiple of 2" } }
    end)
    expect(text).to_contain "recipes/x.lua:5:18: model.layers: 5 is not a multiple of 2"
  end)
end)

describe("a resolved recipe", function()
  it("runs again and gives the same tree", function()
    local lines = 'r.tags["a b"] = "c\\n"\nr.optimizer.lr = 0.1 + 0.2\nr.scheduler = t.sched.cosine { floor = 1/3 }\nr.run_name = "y"'
    local first, result = tree(whole(lines), { "optimizer.betas=[0.5,0.25]" })
    local second, again = tree(result.lua)
    expect(second).to_equal(first)
    expect(again.lua).to_equal(result.lua)
  end)

  it("keeps the story of every value", function()
    local _, result = tree(whole "r.optimizer.lr = 2", { "optimizer.lr=3" })
    local story = {}
    for i, entry in ipairs(result.history["optimizer.lr"]) do
      story[i] = ("%s %s %s %s"):format(entry.by, entry.at, entry.value, tostring(entry.shadowed))
    end
    expect(story).to_equal { "argument argument 2 3 nil", "recipe recipes/x.lua:4 0.001 true", "recipe recipes/x.lua:5 2 true" }
    expect(result.history.seed[1].by).to_equal "default"
  end)

  it("keeps the text of every source", function()
    local _, result = tree('return (require "b":extend "c")', {}, { ["recipes/b.lua"] = whole() })
    expect(result.sources["recipes/b.lua"]).to_equal(whole())
  end)
end)
