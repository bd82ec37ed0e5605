-- Specs of lua/tycho/overrides/init.lua and operators.lua: the grammar of arguments, and operators on whatever a recipe writes.
local fixture = require "fixture"
local overrides = require "tycho.overrides"
local tree, report, whole = fixture.tree, fixture.report, fixture.whole

local function parsed(text)
  local override, problem = overrides.parse(text)
  if not override then return problem.message end
  return { override.op, overrides.path(override.parts), override.value }
end

describe("an override", function()
  it("has a path, an operator and a value", function()
    expect(parsed "optimizer.lr=1e-4").to_equal { "=", "optimizer.lr", "1e-4" }
    expect(parsed "seq_len := 2^10").to_equal { ":=", "seq_len", "2^10" }
    for _, op in ipairs { "+=", "-=", "*=", "/=" } do expect(parsed("a.b" .. op .. "3")).to_equal { op, "a.b", "3" } end
    expect(parsed "+tags.a=b").to_equal { "+", "tags.a", "b" }
    expect(parsed "~tags.a").to_equal { "~", "tags.a" }
    expect(parsed "@x/y.lua").to_equal { "@", "", "x/y.lua" }
  end)

  it("keeps what its value has: equals signs, spaces, dollars, quotes", function()
    expect(parsed "run_name=a=b c$d'e").to_equal { "=", "run_name", "a=b c$d'e" }
    expect(parsed "run_name=").to_equal { "=", "run_name", "" }
    expect(parsed "lr=-1").to_equal { "=", "lr", "-1" }
  end)

  it("quotes names that have dots", function()
    local override = overrides.parse 'tags."a.b".c=x'
    expect({ override.parts[2].key, override.parts[3].key, #override.parts }).to_equal { "a.b", "c", 3 }
    expect(tree(whole(), { 'tags."a.b"=x' }).tags["a.b"]).to_equal "x"
    expect(parsed 'tags."a=b').to_equal "this quote is never closed"
  end)

  it("says what is missing", function()
    expect(parsed "a..b=1").to_equal "a key cannot begin with ."
    expect(parsed "a.=1").to_equal "a key cannot begin with ="
    expect(parsed "a").to_equal "expected key=value"
    expect(parsed "a*=").to_equal "expected a value after *="
    expect(parsed "@").to_equal "expected a file name after @"
  end)

  it("can be written so that a shell takes it as one word", function()
    expect(overrides.shell_word "optimizer.lr=1e-4").to_equal "optimizer.lr=1e-4"
    expect(overrides.shell_word "betas=[0.9,0.98]").to_equal "'betas=[0.9,0.98]'"
    expect(overrides.shell_word "~tags.a").to_equal "'~tags.a'"
    expect(overrides.shell_word "name=it's").to_equal "'name=it'\\''s'"
  end)
end)

describe("a relative operator", function()
  it("acts on what the recipe writes when it is written, so derived values follow", function()
    local text = whole 'r.seq_len = 512\nr.seed = r.seq_len * 2\nr.optimizer.lr = 6e-4\nr.run_name = ("lr%g"):format(r.optimizer.lr)'
    local x = tree(text, { "seq_len+=512", "optimizer.lr*=0.5" })
    expect({ x.seq_len, x.seed, x.optimizer.lr, x.run_name }).to_equal { 1024, 2048, 3e-4, "lr0.0003" }
  end)

  it("acts on the default when the recipe writes nothing", function()
    expect(tree(whole(), { "seq_len/=2", "clip_norm-=0.5" }).seq_len).to_equal(512)
  end)

  it("acts again on every write", function()
    expect(tree(whole "r.seq_len = 10\nr.seq_len = 20", { "seq_len*=3" }).seq_len).to_equal(60)
  end)

  it("acts on durations, sizes, text and lists", function()
    local x = tree(whole 'r.stages = { "a", "b" }\nr.run_name = "x"', { "max_duration+=5ba", "ckpt.every*=2", "buffer/=2", "run_name+=-y",
      "stages+=[c,d]", "stages-=[a]", "optimizer.betas.2*=0.5" })
    expect({ x.max_duration, x.ckpt.every, x.buffer, x.run_name }).to_equal { "105ba", "20ba", "32MiB", "x-y" }
    expect(x.stages).to_equal { "b", "c", "d" }
    expect(x.optimizer.betas[2]).to_equal(0.475)
  end)

  it("acts on the name that a run has from its recipe", function()
    expect(tree(whole(), { "run_name+=-b" }).run_name).to_equal "x-b"
    expect(tree('return (require "base":extend "y")', { "run_name+=-b" }, { ["recipes/base.lua"] = whole() }).run_name).to_equal "y-b"
  end)

  it("acts after a pin, from left to right", function()
    expect(tree(whole "r.seed = 5", { "seed=10", "seed*=2", "seed+=1" }).seed).to_equal(21)
    expect(tree(whole "r.seed = 5", { "seed*=2", "seed=10" }).seed).to_equal(10)
  end)

  it("follows a recipe that extends another", function()
    local base = whole "r.seq_len = 100"
    expect(tree('return (require "base" :extend "y")', { "seq_len*=2" }, { ["recipes/base.lua"] = base }).seq_len).to_equal(200)
    expect(tree('local r = require "base" :extend "y"\nr.seq_len = 7\nreturn r', { "seq_len*=2" }, { ["recipes/base.lua"] = base }).seq_len)
      .to_equal(14)
  end)

  it("warns when the recipe writes what it computed from the result", function()
    tree(whole "r.seq_len = 100\nr.seq_len = r.seq_len + 1", { "seq_len*=2" })
    expect(fixture.printed).to_contain "recipes/x.lua:6:3: warning: seq_len was read above, after seq_len*=2, and is written here: *= acts again"
  end)

  it("is refused where there is nothing to act on or the result does not fit", function()
    expect(report(whole(), { "micro_batch*=2" })).to_contain "micro_batch has no value to multiply"
    expect(report(whole(), { "seq_len*=0.3" })).to_contain "307.2 after 1024: expected integer > 0"
    expect(report(whole(), { "max_duration+=5tok" })).to_contain "cannot add 100ba and 5tok"
    expect(report(whole(), { "model.tied+=1" })).to_contain "does not work on a key that is true or false"
  end)

  it("is told apart from a pin in the story of a value", function()
    local _, result = tree(whole "r.seed = 5", { "seed*=2" })
    local story = {}
    for i, one in ipairs(result.history.seed) do story[i] = ("%s %s %s %s"):format(one.by, one.value, tostring(one.changed), one.text or "") end
    expect(story).to_equal { "default 17 true ", "argument 34 nil seed*=2", "recipe 5 true ", "argument 10 nil seed*=2" }
  end)
end)

describe("unsetting", function()
  it("takes names out of open tables and gives keys their default back, whatever the recipe writes", function()
    local x = tree(whole 'r.tags.a, r.tags.b = "x", "y"\nr.seq_len = 5\nr.ckpt = { keep = 9, every = "1ba" }\nr.scheduler = t.sched.cosine {}',
      { "~tags.a", "~seq_len", "~ckpt.keep", "~scheduler" })
    expect(x.tags).to_equal { b = "y" }
    expect({ x.seq_len, x.ckpt.keep, x.ckpt.every, x.scheduler.kind }).to_equal { 1024, 3, "1ba", "constant" }
  end)

  it("empties groups and open tables as a whole", function()
    local x = tree(whole 'r.tags.a = "x"\nr.ckpt = { keep = 9, every = "1ba" }', { "~tags", "~ckpt" })
    expect(x.tags).to_equal {}
    expect(x.ckpt).to_equal { every = "10ba", keep = 3 }
  end)

  it("is refused for required keys", function()
    expect(report(whole(), { "~optimizer.lr" })).to_contain "this key is required: it can be changed, not unset"
  end)
end)

describe("adding", function()
  it("puts names into open tables", function()
    local x = tree(whole 'r.tags.a = "x"', { "+tags.b=y", "+eval_data.val=text{path=p}", "eval_data.val.len=3" })
    expect(x.tags).to_equal { a = "x", b = "y" }
    expect(x.eval_data.val).to_equal { kind = "text", path = "p", len = 3 }
  end)

  it("is refused for keys of the schema", function()
    expect(report(whole(), { "+seed=3" })).to_contain "write  seed=3"
  end)
end)

describe("later arguments", function()
  it("change parts of what earlier ones chose", function()
    expect(tree(whole(), { "scheduler=cosine{floor=0.1}", "scheduler.floor=0.5" }).scheduler.floor).to_equal(0.5)
    expect(tree(whole(), { "tags={a=x}", "tags.a=y", "tags.b=z" }).tags).to_equal { a = "y", b = "z" }
    expect(tree(whole(), { "optimizer.betas=[0.1,0.2]", "optimizer.betas.2=0.3" }).optimizer.betas).to_equal { 0.1, 0.3 }
    expect(tree(whole(), { "optimizer.betas.2=0.3", "optimizer.betas=[0.1,0.2]" }).optimizer.betas).to_equal { 0.1, 0.2 }
  end)

  it("replace earlier ones with a note", function()
    expect(tree(whole(), { "seed=1", "seed=2" }).seed).to_equal(2)
    expect(fixture.printed).to_contain "argument 3  warning: seed=2: replaces what argument 2 said: seed=1"
  end)
end)

describe("an expression", function()
  it("sees what the recipe says, also of its own key", function()
    local x = tree(whole 'r.model.width = 128\nr.optimizer.lr = 4e-3\nr.run_name = ("lr%g"):format(r.optimizer.lr)',
      { "optimizer.lr:=r.optimizer.lr * (r.model.width/32)^-0.5" })
    expect({ x.optimizer.lr, x.run_name }).to_equal { 2e-3, "lr0.002" }
  end)

  it("fills a key that the recipe leaves open and reads", function()
    local text = whole 'r.optimizer.lr = t.required\nr.run_name = ("lr%g"):format(r.optimizer.lr)\nr.seq_len = 2048'
    local x = tree(text, { "optimizer.lr:=r.seq_len / 1024" })
    expect({ x.optimizer.lr, x.run_name, x.seq_len }).to_equal { 2, "lr2", 2048 }
  end)

  it("gives values of every type", function()
    local x = tree(whole(), { "seq_len:=2^10", "max_duration:=t.ba(3) * 4", "scheduler:=t.sched.cosine { floor = 0.5 }", "stages:={ 'a' }",
      "stages+=[b]", "micro_batch:=t.null", "buffer:=t.MiB(3)" })
    expect({ x.seq_len, x.max_duration, x.scheduler.floor, x.buffer }).to_equal { 1024, "12ba", 0.5, "3MiB" }
    expect(x.stages).to_equal { "a", "b" }
  end)

  it("may depend on another", function()
    expect(tree(whole(), { "seed:=r.seq_len + 1", "seq_len:=r.model.layers * 10" }).seed).to_equal(41)
  end)

  it("prints once what the recipe prints, though it runs more than once", function()
    tree(whole 'print("seen", r.seed)', { "seed:=r.seq_len" })
    expect(fixture.printed).to_equal "seen\t1024\n"
  end)

  it("cannot write and cannot see more than a recipe", function()
    expect(report(whole(), { "seed:=(function() r.seq_len = 3 return 4 end)()" })).to_contain "the recipe is finished"
    expect(report(whole(), { "seed:=os.time()" })).to_contain "no clock"
    expect(report(whole(), { "seed:=nothing + 1" })).to_contain "undeclared name  nothing"
  end)

  it("ends, also when it catches what ends it, and when it gives itself a name", function()
    for _, loop in ipairs { "(function() while true do end end)()", "(function() while true do pcall(function() while true do end end) end end)()",
      "load('while true do end', '=lua/tycho/node.lua')()", "load('while true do end', '=[C]')()", "r.seq_len + load('while true do end', 'x')()" } do
      expect(report(whole(), { "seed:=" .. loop })).to_contain "is there an endless loop?"
    end
  end)

  it("that never settles is refused", function()
    expect(report(whole(), { "seed:=r.seq_len + 1", "seq_len:=r.seed + 1" })).to_contain "endlessly"
  end)
end)

describe("a file of overrides", function()
  it("has one a line, a table of Lua, or JSON", function()
    local files = { ["o.txt"] = "# comment\nseq_len=512\n\n  optimizer.lr*=2\n-- comment\n",
      ["o.lua"] = 'return { seed = 3, ckpt = { keep = 1 }, ["optimizer.betas"] = { 0.1, 0.2 }, scheduler = { kind = "cosine", floor = 0.5 } }',
      ["o.json"] = '{"seed": 4, "micro_batch": null, "model": {"kind": "llama", "width": 8}, "max_duration": "7ba"}' }
    local x = tree(whole(), { "@o.txt", "@o.lua", "@o.json" }, files)
    expect({ x.seq_len, x.optimizer.lr, x.seed, x.ckpt.keep, x.scheduler.floor, x.model.width, x.max_duration })
      .to_equal { 512, 2e-3, 4, 1, 0.5, 8, "7ba" }
  end)

  it("is ordered with the other arguments and kept among the sources", function()
    local files = { ["o.txt"] = "seed=5" }
    expect(tree(whole(), { "seed=1", "@o.txt" }, files).seed).to_equal(5)
    local x, result = tree(whole(), { "@o.txt", "seed=1" }, files)
    expect(x.seed).to_equal(1)
    expect(result.sources["o.txt"]).to_equal "seed=5"
  end)

  it("is named with its line when a value is wrong, and in the story", function()
    expect(report(whole(), { "@o.txt" }, { ["o.txt"] = "seed=1\nsede=2\n" })).to_contain "o.txt:2:1: sede=2: unknown key  sede"
    local _, result = tree(whole(), { "@o.txt" }, { ["o.txt"] = "\nseed=5" })
    expect(result.history.seed[2].at).to_equal "o.txt:2"
  end)
end)
