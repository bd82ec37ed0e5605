-- Specs of lua/tycho/overrides/pins.lua: key=value arguments are known before the recipe runs.
local session = require "tycho.session"
local fixture = require "fixture"
local tree, report, whole = fixture.tree, fixture.report, fixture.whole

-- What is wrong with a recipe of Tycho's own keys that has these lines, too; nil for nothing.
local function report_with(lines, argument)
  local text = [[
local t = require "tycho"
local r = t.recipe "x"
r.model, r.seq_len, r.max_duration, r.tokenizer = t.model.llama {}, 64, "12ba", "t.json"
r.optimizer, r.train_data = t.optim.adamw { lr = 3e-3 }, t.data.mds { local_dir = "data" }
]] .. lines .. "\nreturn r\n"
  local loaded = session.load { file = "x.lua", files = { ["x.lua"] = text }, only_files = true, quiet = true,
    arguments = { { argument = 2, text = argument } }, check_tree = function() return {} end }
  return loaded.problems > 0 and loaded.report or nil
end

-- The same, whose train_data is first MDS and then what `kind` says.
local function report_of_second(kind, argument) return report_with("r.train_data = t.data." .. kind, argument) end

describe("pins", function()
  it("are visible while the recipe runs, so derived values follow", function()
    local x = tree(whole 'r.seq_len = 512\nr.seed = r.seq_len + 1\nr.run_name = "x" .. r.seq_len', { "seq_len=2048" })
    expect({ x.seq_len, x.seed, x.run_name }).to_equal { 2048, 2049, "x2048" }
  end)

  it("are read by the type of their key", function()
    local x = tree(whole(), { "optimizer.lr=1e-4", "model.layers=8", "max_duration=2e3ba", "precision=bf16", "model.tied=true",
      "optimizer.betas=[0.5,0.25]", "run_name=1e4", "ckpt={keep=7}", "tags={a=b}", "tags.c=d", "micro_batch=2sp" })
    expect({ x.optimizer.lr, x.model.layers, x.max_duration, x.precision, x.model.tied }).to_equal { 1e-4, 8, "2000ba", "bf16", true }
    expect({ x.optimizer.betas[1], x.optimizer.betas[2], x.run_name, x.ckpt.keep }).to_equal { 0.5, 0.25, "1e4", 7 }
    expect({ x.tags.a, x.tags.c, x.micro_batch }).to_equal { "b", "d", "2sp" }
  end)

  it("are judged by the kind that stays, where a recipe replaces another one's component", function()
    expect(report_of_second('chat { path = "rows.jsonl" }', "train_data.compat=composer")).to_be_nil()
    expect(report_of_second('chat { path = "rows.jsonl" }', "train_data.compat=streaming")).to_contain '"none"  "composer"'
    expect(report_of_second('mds { local_dir = "other" }', "train_data.compat=composer")).to_contain '"none"  "streaming"'
  end)

  it("are refused as the kind that the recipe chooses says, not as another kind with a key of that name", function()
    local lines = [[
r.callbacks.mine = t.component { name = "mine", fields = { window = t.duration { default = "9ba", units = "ba tok" } },
  batch_end = function() end } {}]]
    expect(report_with(lines, "callbacks.mine.window=30ba")).to_be_nil()
    expect(report_with(lines, "callbacks.mine.window=3s")).to_contain
      "argument 2  callbacks.mine.window=3s: expected ba (batches), tok (tokens), got a time"
    expect(report_with(lines, "callbacks.mine.window+=x")).to_contain "window+=x: expected a number and a unit"
    expect(report_with("r.callbacks.mine = t.cb.loss_spike {}", "callbacks.mine.window=3s")).to_contain "expected integer >= 1 and <= 10000"
    expect(report_with(lines .. "\nlocal w = r.callbacks.mine.window", "callbacks.mine.window=3s")).to_contain "expected ba (batches), tok"
    expect(report_with(lines, "callbacks.other.window=x")).to_contain "callbacks.other is not set in this recipe"
  end)

  it("set one value of a list, counted from 1", function()
    expect(tree(whole(), { "optimizer.betas.2=0.98" }).optimizer.betas[2]).to_equal(0.98)
    expect(report(whole(), { "optimizer.betas.0=0.9" })).to_contain "Lua indices start at 1; betas.1 is the first value"
    expect(report(whole(), { "optimizer.betas.3=0.9" })).to_contain "only 2 values"
  end)

  it("choose a component, in three spellings", function()
    for _, text in ipairs { "scheduler=cosine", "scheduler=cosine{floor=0.5}", "scheduler={cosine, floor=0.5}" } do
      local x = tree(whole 'r.scheduler = t.sched.constant { warmup = "9ba" }', { text })
      expect({ x.scheduler.kind, x.scheduler.warmup }).to_equal { "cosine", "0ba" }
    end
  end)

  it("of a component lose the keys of another kind that a later value replaces, and keep those of their own", function()
    local x = tree(whole(), { "scheduler=cosine{floor=0.5,warmup=9ba}", "scheduler=constant" })
    expect(x.scheduler).to_equal { kind = "constant", warmup = "0ba" }
    x = tree(whole(), { "scheduler.warmup=3ba", "scheduler=cosine{floor=0.5}", "scheduler=constant" })
    expect(x.scheduler).to_equal { kind = "constant", warmup = "3ba" }
    x = tree(whole(), { "scheduler=cosine{floor=0.5}", "scheduler=cosine{warmup=9ba}" })
    expect({ x.scheduler.floor, x.scheduler.warmup }).to_equal { 0.5, "9ba" }
  end)

  it("hide what the recipe says about a component that was replaced", function()
    local text = whole "r.scheduler = t.sched.cosine { floor = 0.5 }\nr.scheduler.floor = 0.7"
    expect(tree(text, { "scheduler=constant" }).scheduler).to_equal { kind = "constant", warmup = "0ba" }
  end)

  it("say so when a hidden key is read", function()
    expect(report(whole "r.scheduler = t.sched.cosine {}\nr.seed = r.scheduler.floor", { "scheduler=constant" })).to_contain
      "recipes/x.lua:6:22: scheduler.floor is read here, but an argument chose constant"
  end)

  it("fill what the recipe leaves open", function()
    local x = tree(whole "r.optimizer.lr = t.required\nr.scheduler = t.required", { "optimizer.lr=3", "scheduler=cosine" })
    expect({ x.optimizer.lr, x.scheduler.kind }).to_equal { 3, "cosine" }
  end)

  it("give optional components, and take them away", function()
    local null = require("tycho.values").null
    expect(tree(whole(), { "probe=text{path=x}" }).probe).to_equal { kind = "text", path = "x", len = 8 }
    expect(tree(whole(), { "probe=text", "probe.path=x" }).probe.path).to_equal "x"
    expect(tree(whole(), { 'probe:=t.probe.text { path = "x" }' }).probe.path).to_equal "x"
    local text = whole 'r.probe = t.probe.text { path = "x" }'
    expect(tree(text, { "probe=null" }).probe).to_equal(null)
    expect(tree(text, { "probe.len=3" }).probe.len).to_equal(3)
    expect(report(whole "r.probe = t.probe.text { pth = 1 }", { "probe=null" })).to_contain "probe.pth"
    expect(report(whole(), { "probe.len=3" })).to_contain "probe is not set in this recipe"
  end)

  it("on a name that another argument takes out are mistakes, in either order", function()
    local text = whole 'r.eval_data.a = t.data.text { path = "x" }'
    expect(report(text, { "~eval_data.a", "eval_data.a.len=3" })).to_contain
      "argument 3  eval_data.a.len=3: argument 2 removes eval_data.a"
    expect(report(text, { "eval_data.a.len=3", "~eval_data.a" })).to_contain
      "argument 3  ~eval_data.a: argument 2 changes what this removes"
    expect(report(text, { "eval_data.a.len*=3", "~eval_data.a" })).to_contain "argument 2 changes what this removes"
    local again = tree(text, { "~eval_data.a", "eval_data.a=text{path=y}", "eval_data.a.len=3" }).eval_data.a
    expect({ again.path, again.len }).to_equal { "y", 3 }
    expect(tree(text, { "eval_data.a=mds{dir=d}", "~eval_data.a" }).eval_data.a).to_equal(nil)
    expect(tree(whole 'r.ckpt.keep = 9', { "ckpt.every=3ba", "~ckpt" }).ckpt.keep).to_equal(3)
  end)

  it("on a name that is not there say how to add it", function()
    local said = report(whole 'r.eval_data.a = t.data.text { path = "x" }', { "eval_data.b.len=3" })
    expect(said).to_contain "eval_data.b is not set in this recipe"
    expect(said).to_contain "existing: a; add a complete one with  'eval_data.b=text{len=3}'"
  end)

  it("check hidden writes all the same", function()
    expect(report(whole "r.scheduler = t.sched.cosine { flor = 0.5 }", { "scheduler=constant" })).to_contain "scheduler.flor"
  end)

  it("win from left to right", function()
    expect(tree(whole(), { "seed=1", "seed=2" }).seed).to_equal(2)
  end)

  it("suggest the key that was meant", function()
    expect(report(whole(), { "optimizer.lrr=1" })).to_contain
      "argument 2  optimizer.lrr=1: unknown key  optimizer.lrr\n     | optimizer.lrr=1\n     |           ^^^ did you mean  optimizer.lr  (number > 0, required)?"
  end)

  it("refuse keys of a kind that is not chosen", function()
    expect(report(whole(), { "scheduler.floor=0.5" })).to_contain
      "argument 2  scheduler.floor=0.5: scheduler is constant here; its keys are warmup"
  end)

  it("refuse wrong units, values out of range and half-written arguments", function()
    local text = report(whole(), { "max_duration=4800", "optimizer.lr=-1", "precision=fp17", "=3", "seq_len", "seed=", "model=gpt",
      "model.tied=yes", "precision+=3", "optimizer.betas=0.9" })
    expect(text).to_contain "argument 2  max_duration=4800: a duration needs a unit: 4800ba (batches), 4800tok (tokens)"
    expect(text).to_contain "argument 3  optimizer.lr=-1: expected number > 0"
    expect(text).to_contain 'argument 4  precision=fp17: one of  "fp32"  "bf16"'
    expect(text).to_contain "argument 6  seq_len: expected key=value"
    expect(text).to_contain "argument 5  =3: a key cannot begin with ="
    expect(text).to_contain "argument 7  seed=: expected integer >= 0"
    expect(text).to_contain "argument 8  model=gpt: one of  llama"
    expect(text).to_contain "argument 9  model.tied=yes: expected true or false"
    expect(text).to_contain 'argument 10  precision+=3: += does not work on a key that is one of  "fp32"  "bf16"; write key=value'
    expect(text).to_contain "argument 11  optimizer.betas=0.9: expected a list such as [0.9,0.98]"
    expect(text).to_contain "10 problems; nothing was started."
  end)
end)
