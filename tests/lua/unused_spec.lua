-- Specs of lua/tycho/hints/unused.lua: which locals nothing reads, and which look like it and are read.
local fixture = require "fixture"
local unused = require "tycho.hints.unused"

-- "name@line:col" of each.
local function found(text)
  assert(loadstring((text:gsub("^#[^\n]*", ""))))
  local out = {}
  for i, token in ipairs(unused.locals(text)) do out[i] = ("%s@%d:%d"):format(token.text, token.line, token.col) end
  return out
end

local function clean(text) expect(found(text)).to_equal {} end

describe("locals that nothing reads", function()
  it("are found with their places", function()
    expect(found "local x = 1\nlocal y, z = 2, 3\nreturn y").to_equal { "x@1:7", "z@2:10" }
    expect(found "#!/usr/bin/tycho\n  local x").to_equal { "x@2:9" }
    expect(found "local function f() end").to_equal { "f@1:16" }
  end)

  it("are those that are only given values, too", function()
    expect(found "local x\nx = 1\nlocal y = 2\nfunction y() end").to_equal { "x@1:7", "y@3:7" }
    expect(found "local a, b\na, b = b, 1").to_equal {}
  end)

  it("are told from others of the same name", function()
    expect(found "local x = 1\nlocal x = 2\nreturn x").to_equal { "x@1:7" }
    expect(found "local x = 1\ndo local x = 2 end\nreturn x").to_equal { "x@2:10" }
    expect(found "local x = 1\nreturn function(x) return x end").to_equal { "x@1:7" }
    expect(found "local x = 1\nfor x = 1, 2 do print(x) end").to_equal { "x@1:7" }
    clean "local x = 1\nlocal x = x + 1\nreturn x"
    clean "local x = 1\nfor x = x, 2 do print(x) end"
  end)

  it("are not fields, methods, keys, labels and texts of the same name", function()
    expect(found 'local x = 1\nlocal t = {}\nt.x, t["x"] = 1, { x = 2 }\nt:x "x"\n::x:: goto x\nlocal s = [[x]] -- x\nreturn s')
      .to_equal { "x@1:7" }
    clean "local x = 1\nreturn { [x] = 2 }"
    clean "local x = 1\nreturn { x }"
    clean "local x = {}\nx.y = 1"
    clean "local x = {}\nfunction x.y.z:w() return self end"
    clean 'local f = print\nf"x"\nlocal g = print\ng{ 1 }\nlocal h = {}\nh:m[[x]]'
  end)
end)

describe("locals that need not be read", function()
  it("are parameters, names of loops, and those that begin with _", function()
    clean "return function(a, b, ...) end"
    clean "for i = 1, 2 do end\nfor k, v in pairs {} do end"
    clean "local _, _x = 1, 2\nlocal function _f() end"
  end)

  it("hold the place of one that is read", function()
    clean "local ok, result = pcall(print)\nreturn result"
    expect(found "local ok, result, more = pcall(print)\nreturn result").to_equal { "more@1:19" }
  end)
end)

describe("locals that are read", function()
  it("in closures, by themselves, and before what they are read by", function()
    clean "local n = 0\nreturn function() n = n + 1 return n end"
    clean "local function fact(n) return n < 2 and 1 or n * fact(n - 1) end\nreturn fact(5)"
    clean "local f\nlocal function g() return f() end\nfunction f() return g() end"
  end)

  it("in the condition of a repeat, whose block they belong to", function()
    clean "repeat local done = true until done"
    expect(found "local done\nrepeat local done = true until done").to_equal { "done@1:7" }
    expect(found "while true do local done = true break end").to_equal { "done@1:21" }
  end)

  it("in every part of a statement", function()
    clean "local a, b, c = 1, 2, 3\nif a then elseif b then else print(c) end"
    clean "local a, b = 1, 2\nwhile a do return -b ^ 2 .. '' end"
    clean "local a, b, c = 1, 2, 3\nfor i = a, b, c do end"
    clean "local a = {}\nlocal i = 1\na[i], a[i].x = 1, 2;(print)(1)"
    clean "local a = 0x1.8p3\nlocal b = 10ULL\nlocal c = 1e-4\nreturn not a == #b, c"
    clean 'local goto_ = 1\ndo goto out end\n::out:: print(goto_)'
  end)

  it("whatever their names are", function()
    clean "local outer, names, self = 1, 2, 3\nreturn outer + names + self"
    expect(found "local outer = 1").to_equal { "outer@1:7" }
  end)
end)

describe("a text that is no Lua of ours", function()
  it("finds nothing", function()
    expect(unused.locals "local x = @ 1").to_equal {}
    expect(unused.locals "local x = (").to_equal {}
    expect(unused.locals "end local x").to_equal {}
    expect(unused.locals "local x = 1 end").to_equal {}
  end)
end)

describe("a recipe with such locals", function()
  local kText = fixture.whole 'local extra = require "extra"'
  local kFiles = { ["recipes/extra.lua"] = "local x = 1\nreturn {}\n" }
  it("is warned of only when that is asked for, also in its files", function()
    fixture.tree(kText, nil, kFiles)
    expect(fixture.printed).to_equal ""
    local result = fixture.load(kText, nil, kFiles, nil, true)
    expect(result.problems).to_equal(0)
    expect(fixture.printed).to_equal(table.concat {
      "recipes/extra.lua:1:7: warning: the local x is never used\n   1 | local x = 1\n",
      "     |       ^ remove it, or start its name with _\n",
      'recipes/x.lua:5:7: warning: the local extra is never used\n   5 | local extra = require "extra"\n',
      "     |       ^^^^^ remove it, or start its name with _\n" })
    expect(result.warnings[1].file).to_equal "recipes/extra.lua"
    expect(result.warnings[2].column).to_equal(7)
  end)
end)
