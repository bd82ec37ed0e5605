-- Specs of the recipe language past plain assignment: lists, open tables, lazy values, frozen recipes, renames, units.
local fixture = require "fixture"
local native = require "tycho.native"
local site_of = require "tycho.site"
local tree, report, whole = fixture.tree, fixture.report, fixture.whole

describe("lists", function()
  it("are replaced by a list, and changed by t.append and its like", function()
    local x = tree(whole [[
r.stages = { "a", "b" }
r.stages = t.append { "c" }
r.stages = t.prepend { "z" }
r.stages = t.insert(2, { "y" })
r.stages = t.remove { "b" }
r.stages[1] = "first"]])
    expect(x.stages).to_equal { "first", "y", "a", "c" }
    expect(tree(whole 'r.stages = { "a" }\nr.stages = { "b" }').stages).to_equal { "b" }
  end)

  it("hold groups", function()
    local x = tree(whole 'r.groups = { { pattern = "bias" }, { pattern = "norm", scale = 0.5 } }\nr.groups[1].scale = 2\nr.groups = t.append { { pattern = "x" } }')
    expect(x.groups).to_equal { { pattern = "bias", scale = 2 }, { pattern = "norm", scale = 0.5 }, { pattern = "x", scale = 1 } }
    expect(tree(whole 'r.groups = { { pattern = "bias" } }', { "groups.1.scale=3" }).groups[1].scale).to_equal(3)
  end)

  it("refuse what is not there", function()
    expect(report(whole 'r.stages = t.remove { "b" }')).to_contain 'the list does not contain {"b"}'
    expect(report(whole 'r.stages = t.insert(3, { "b" })')).to_contain "t.insert expects a position from 1 to 1"
    expect(report(whole 'r.groups = { { patern = "b" } }')).to_contain "unknown key  groups.1.patern"
  end)
end)

describe("open tables", function()
  it("merge, and are replaced or thinned on request", function()
    local first = 'r.tags = { a = "1", b = "2" }\n'
    expect(tree(whole(first .. 'r.tags = { b = "3", c = "4" }')).tags).to_equal { a = "1", b = "3", c = "4" }
    expect(tree(whole(first .. 'r.tags = t.replace { c = "4" }')).tags).to_equal { c = "4" }
    expect(tree(whole(first .. 'r.tags = t.remove { "a" }')).tags).to_equal { b = "2" }
    expect(tree(whole(first .. "r.tags.a = t.unset")).tags).to_equal { b = "2" }
  end)

  it("hold components", function()
    local x = tree(whole [[
r.eval_data.val = t.data.text { path = "v" }
r.eval_data.val.len = 3
r.eval_data.other = t.data.mds { dir = "d" }
r.eval_data.other = t.data.text {}
for name, data in pairs(r.eval_data) do r.tags[name] = data.path end]])
    expect(x.eval_data).to_equal { val = { kind = "text", path = "v", len = 3 }, other = { kind = "text", path = "", len = 8 } }
    expect(x.tags).to_equal { val = "v", other = "" }
  end)
end)

describe("t.required", function()
  it("holds for names of open tables and for components in them", function()
    expect(report(whole "r.tags.owner = t.required")).to_contain "recipes/x.lua:5:8: tags.owner is required and not set"
    expect(tree(whole "r.tags.owner = t.required", { "tags.owner=me" }).tags.owner).to_equal "me"
    expect(report(whole "r.eval_data.val = t.data.text { path = t.required }")).to_contain "eval_data.val.path is required"
  end)
end)

describe("t.unset", function()
  it("gives a key its default back", function()
    local x = tree(whole 'r.seq_len = 5\nr.seq_len = t.unset\nr.scheduler = t.sched.cosine {}\nr.scheduler = t.unset\nr.ckpt.keep = 9\nr.ckpt = t.unset')
    expect({ x.seq_len, x.scheduler.kind, x.ckpt.keep }).to_equal { 1024, "constant", 3 }
  end)
end)

describe("lazy values", function()
  it("are made from the finished recipe, pins included, in any order", function()
    local x = tree(whole [[
r.seed = t.lazy(function(c) return c.seq_len + 1 end)
r.seq_len = t.lazy(function(c) return c.model.width * 2 end)
r.stages = t.lazy(function(c) return { c.run_name } end)
r.model.width = 16]], { "model.width=32" })
    expect({ x.seed, x.seq_len, x.stages[1] }).to_equal { 65, 64, "x" }
  end)

  it("give way to pins and take relative operators", function()
    expect(tree(whole "r.seq_len = t.lazy(function(c) return 7 end)", { "seq_len=5" }).seq_len).to_equal(5)
    expect(tree(whole "r.seq_len = t.lazy(function(c) return 7 end)", { "seq_len*=2" }).seq_len).to_equal(14)
  end)

  it("follow a recipe that extends another", function()
    local base = whole "r.seed = t.lazy(function(c) return c.seq_len end)"
    expect(tree('local r = require "b":extend "c"\nr.seq_len = 9\nreturn r', {}, { ["recipes/b.lua"] = base }).seed).to_equal(9)
  end)

  it("name the circle that they stand in", function()
    expect(report(whole "r.seed = t.lazy(function(c) return c.seq_len end)\nr.seq_len = t.lazy(function(c) return c.seed end)"))
      .to_contain "seed depends on itself: seed -> seq_len -> seed"
  end)
end)

describe("a finished recipe", function()
  it("cannot be written", function()
    expect(report(whole 'r:check("c", function(c) c.seed = 3 return true end)')).to_contain "seed is written here, but the recipe is finished"
    expect(report(whole 'local m = r.model\nr:check("c", function() m.width = 8 return true end)')).to_contain "model.width is written here"
  end)

  it("that was required can only be extended", function()
    local text = report('local b = require "b"\nb.seed = 3\nreturn b:extend "c"', {}, { ["recipes/b.lua"] = whole() })
    expect(text).to_contain 'make your own:  local r = base:extend "name"'
  end)

  it("takes computed paths before that", function()
    expect(tree(whole 'for _, key in ipairs { "model.width", "seq_len" } do r:set(key, 64) end').model.width).to_equal(64)
    expect(report(whole 'r:set("model.widht", 64)')).to_contain "unknown key  model.widht"
  end)
end)

describe("a key that appears twice in a table", function()
  it("is a warning, and the later value wins", function()
    local x = tree(whole 'r.optimizer = { lr = 1,\n  betas = { 0.5, 0.5 }, ["lr"] = 2 }\nlocal f = function(lr) return { lr = lr } end')
    expect(x.optimizer.lr).to_equal(2)
    expect(fixture.printed).to_contain 'recipes/x.lua:6:26: warning: "lr" appears twice in this table: the later value wins\n'
    tree(whole 'r.groups = { { pattern = "a" }, { pattern = "b" } }')
    expect(fixture.printed).to_equal ""
  end)
end)

describe("units", function()
  it("have a function each", function()
    local x = tree(whole "r.max_duration = t.tok(1e6) / 2\nr.buffer = t.MiB(3) + t.KiB(1024)\nr.seed = t.ba(100) / t.ba(50)")
    expect({ x.max_duration, x.buffer, x.seed }).to_equal { "500000tok", "4MiB", 2 }
  end)

  it("take shares in percent", function()
    expect(tree(whole 'r.scheduler = t.sched.cosine { floor = "15%" }').scheduler.floor).to_equal(0.15)
    expect(tree(whole(), { "scheduler=cosine", "scheduler.floor=15%" }).scheduler.floor).to_equal(0.15)
  end)

  it("name the unit that was meant", function()
    expect(report(whole 'r.max_duration = "4800 steps"')).to_contain 'write "4800ba"'
    expect(report(whole 'r.max_duration = "1_000tokens"')).to_contain "expected"
  end)
end)

describe("require", function()
  it("looks in the folders of TYCHO_PATH last", function()
    expect(report 'local b = require "b"').to_contain "looked for recipes/b.lua and b.lua"
  end)

  it("finds a package by the name of its folder, after a file of that name", function()
    local package = { ["recipes/acme/init.lua"] = 'return { width = require "acme.sizes".wide }', ["acme/sizes.lua"] = "return { wide = 77 }" }
    local text = 'r.seq_len = require "acme".width'
    expect(tree(whole(text), {}, package).seq_len).to_equal(77)
    package["recipes/acme.lua"] = "return { width = 5 }"
    expect(tree(whole(text), {}, package).seq_len).to_equal(5)
  end)

  it("finds a file whose name has a dot, after the folder that the dot leads into", function()
    local files = { ["recipes/gpt2-1.5b.lua"] = "return { width = 1600 }" }
    local text = 'r.seq_len = require "gpt2-1.5b".width'
    expect(tree(whole(text), {}, files).seq_len).to_equal(1600)
    files["recipes/gpt2-1/5b.lua"] = "return { width = 5 }"
    expect(tree(whole(text), {}, files).seq_len).to_equal(5)
  end)

  it("looks in the folders of modules in their order", function()
    local places = { "recipes/m.lua", "m.lua", "lua_modules/m.lua", site_of.path_of "~/.config/tycho/lua/m.lua" }
    local files = {}
    for i = #places, 1, -1 do
      files[places[i]] = ("return { width = %d }"):format(i)
      expect(tree(whole('r.seq_len = require "m".width'), {}, files).seq_len).to_equal(i)
    end
    expect(report('local b = require "b"')).to_contain "recipes/b.lua and b.lua and lua_modules/b.lua and ~/.config/tycho/lua/b.lua"
  end)

  it("looks for configurations where XDG_CONFIG_HOME is", function()
    local env = native.env
    native.env = function(name) return name == "XDG_CONFIG_HOME" and "/xdg" or name == "HOME" and "/home/x" or nil end
    local path, other = site_of.path_of "~/.config/tycho/lua/m.lua", site_of.path_of "~/m.lua"
    native.env = function(name) return name == "HOME" and "/home/x" or nil end
    local usual = site_of.path_of "~/.config/tycho/lua/m.lua"
    native.env = env
    expect({ path, other, usual }).to_equal { "/xdg/tycho/lua/m.lua", "/home/x/m.lua", "/home/x/.config/tycho/lua/m.lua" }
  end)

  it("finds what a module elsewhere requires beside the recipe", function()
    local files = { ["lua_modules/m.lua"] = 'return require "sizes"', ["recipes/sizes.lua"] = "return { width = 9 }" }
    expect(tree(whole('r.seq_len = require "m".width'), {}, files).seq_len).to_equal(9)
  end)

  it("keeps all files of a module's folder, with a hash of them", function()
    local files = { ["lua_modules/team/init.lua"] = 'return { width = require "team.sizes" }', ["lua_modules/team/sizes.lua"] = "return 9",
      ["lua_modules/team/other/unused.lua"] = "return 1", ["lua_modules/alone.lua"] = "return 1" }
    local _, result = tree(whole('r.seq_len = require "team".width'), {}, files)
    expect(result.sources["lua_modules/team/other/unused.lua"]).to_equal "return 1"
    expect(result.sources["lua_modules/alone.lua"]).to_be_nil()
    local before = result.modules["lua_modules/team"]
    expect(#before).to_equal(32)
    files["lua_modules/team/other/unused.lua"] = "return 2"
    _, result = tree(whole('r.seq_len = require "team".width'), {}, files)
    assert(result.modules["lua_modules/team"] ~= before)
  end)

  it("tells a file that cannot be read from one that is not there", function()
    local session = require "tycho.session"
    local result = session.load { file = "x.lua", schema = fixture.schema, output = function() end, read_file = function(path)
      if path == "x.lua" then return 'return require "b"' end
      return nil, "cannot read b.lua: Permission denied", false
    end }
    expect(result.report).to_contain "x.lua:1:8: b.lua exists, but: cannot read b.lua: Permission denied"
  end)
end)

describe("the hash", function()
  it("does not depend on the order in which a recipe writes", function()
    local lines = { "r.seed = 3", "r.seq_len = 512", 'r.tags = { a = "x", b = "y", c = "z" }', "r.ckpt = { keep = 2, every = '5ba' }",
      "r.scheduler = t.sched.cosine { floor = 0.5, warmup = '3ba' }" }
    local _, first = tree(whole(table.concat(lines, "\n")))
    for shift = 1, #lines - 1 do
      local turned = {}
      for i = 1, #lines do turned[i] = lines[(i + shift - 1) % #lines + 1] end
      turned[#turned + 1] = 'r.tags = { c = "z", a = "x" }'
      local _, again = tree(whole(table.concat(turned, "\n")))
      expect(again.lua).to_equal(first.lua)
    end
  end)
end)
