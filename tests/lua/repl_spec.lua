-- What the REPL does with text before and after it runs: locals that last, entries that go on, values in print.
local eval = require "tycho.repl.eval"
local rewrite = require "tycho.repl.rewrite"
local show = require "tycho.repl.show"
local values = require "tycho.values"

describe("locals at the top of an entry", function()
  it("become assignments and keep their columns", function()
    expect(rewrite.persist("local x = 1")).to_equal("      x = 1")
    expect(rewrite.persist("local a, b = f()")).to_equal("      a, b = f()")
    expect(rewrite.persist("local function f() end")).to_equal("      function f() end")
  end)
  it("get nil without a value", function()
    expect(rewrite.persist("local x")).to_equal("      x = nil")
    expect(rewrite.persist("local a, b\nlocal c = 2")).to_equal("      a, b = nil\n      c = 2")
  end)
  it("stay locals inside of blocks, functions and tables", function()
    for _, text in ipairs { "do local x = 1 end", "for i = 1, 2 do local x = i end", "if a then local x = 1 end",
      "function f() local x = 1 end", "repeat local x = 1 until x", "f(function() local x = 1 end)",
      "t = { function() local x end }", 's = "local x = 1"' } do
      expect(rewrite.persist(text)).to_equal(text)
    end
  end)
  it("are found again behind a block", function()
    expect(rewrite.persist("do local x = 1 end local y = 2")).to_equal("do local x = 1 end       y = 2")
  end)
end)

describe("an entry", function()
  it("goes on while it can", function()
    for _, text in ipairs { "for i = 1, 2 do", "f(", "x = {", "1 +", "x =", "function f()", "if a then b() else", "[[long",
      "w:find(" } do
      expect(eval.is_incomplete(text)).to_equal(true)
    end
  end)
  it("ends when it is whole, or wrong", function()
    for _, text in ipairs { "x", "f()", "x = 1", 'x = "open', "a b c", "x = = 1", "end", "for i = 1, 2 do end", "w:find 'a'" } do
      expect(eval.is_incomplete(text)).to_equal(false)
    end
  end)
end)

describe("the last expression of an entry", function()
  local function values_of(text)
    local vars = setmetatable({}, { __index = _G })
    return { eval.compile(text, 1, vars)() }
  end
  it("has a value behind a semicolon", function()
    expect(values_of("x = 2; x * 3")).to_equal { 6 }
    expect(values_of("local a, b = 1, 2; b")).to_equal { 2 }
    expect(values_of("x = 'a;b'; x")).to_equal { "a;b" }
  end)
  it("has none behind another statement, or inside of a block", function()
    for _, text in ipairs { "x = 1; y = 2", "do local x = 1; end", "x = 1;", "x = function() f(); return 1 end" } do
      expect(values_of(text)).to_equal {}
    end
  end)
end)

describe("values in print", function()
  it("are read back where they can be", function()
    expect(show.value(1e-4)).to_equal("0.0001")
    expect(show.value(3)).to_equal("3")
    expect(show.value('a "b"\t')).to_equal('"a \\"b\\"\\t"')
    expect(show.value("two\nlines")).to_equal("two\nlines")
    expect(show.value(values.duration("100ba"))).to_equal("100ba")
    expect(show.value(nil)).to_equal("nil")
  end)
  it("have their keys in order", function()
    expect(show.value { 1, 2, b = true, a = { "x" }, [10] = 0, [false] = 1 })
      .to_equal('{ 1, 2, [10] = 0, a = { "x" }, b = true, [false] = 1 }')
    expect(show.value {}).to_equal("{}")
  end)
  it("end where tables go round, are deep, or long", function()
    local round = { name = "a" }
    round.self = round
    expect(show.value(round)).to_equal('{ name = "a", self = <the table around it> }')
    expect(show.value { { { { { 1 } } } } }).to_equal("{ { { { {...} } } } }")
    local long = {}
    for i = 1, 1000 do long[i] = i end
    expect(show.value(long)).to_contain("... 488 more")
    for i = 1, 1000 do long[i] = "a" end
    expect(show.value(long)).to_contain("... 960 more")
  end)
  it("stand in rows when they are many numbers", function()
    local ids = {}
    for i = 1, 30 do ids[i] = i == 30 and -100 or 7 * i end
    local lines = {}
    for line in show.value(ids):gmatch("[^\n]+") do lines[#lines + 1] = line end
    expect(#lines).to_equal(5)   -- braces, and 14 numbers of four characters in a row
    expect(lines[2]).to_equal("     7,   14,   21,   28,   35,   42,   49,   56,   63,   70,   77,   84,   91,   98,")
    expect(lines[4]).to_equal("   203, -100")
    local several = show.value { ids, ids }
    expect(several).to_contain("{\n  {\n       7,   14,")
    for i = 1, 600 do ids[i] = i end
    expect(show.value(ids)).to_contain("  ... 88 more")
    for i = 1, 30 do ids[i] = i % 2 == 0 and "x" or i end
    expect(show.value(ids)).to_contain('{\n  1,\n  "x",')
  end)
  it("break into lines when they are wide", function()
    local wide = {}
    for i = 1, 20 do wide[i] = ("word%d"):format(i) end
    expect(show.value(wide)).to_contain('{\n  "word1",\n')
  end)
end)
