-- Specs of lua/tycho/sandbox.lua: the same world on every rank and every day.
local fixture = require "fixture"
local tree, report, whole, printed = fixture.tree, fixture.report, fixture.whole, fixture.prints

describe("the world of a recipe", function()
  it("visits tables in one order", function()
    expect(printed [[
local t = { b = 1, a = 2, [3] = 3, [1] = 4, c = 5 }
local out = {}
for k, v in pairs(t) do out[#out + 1] = k .. "=" .. v end
print(table.concat(out, " "))
local k = next(t)
print(k, (next(t, k)))]]).to_equal "1=4 3=3 a=2 b=1 c=5\n1\t3\n"
  end)

  it("refuses to visit keys that have no order", function()
    expect(report(whole "for k in pairs { [{}] = 1 } do end")).to_contain "keys must be strings or numbers"
  end)

  it("survives removal while visiting", function()
    expect(printed "local x = { a = 1, b = 2, c = 3 }\nfor k in pairs(x) do x[k] = nil x.c = nil end\nprint(next(x))").to_equal "nil\n"
  end)

  it("draws the same random numbers in every run", function()
    local text = "print(math.random(1000), math.random(1000), math.random())"
    expect(printed(text)).to_equal(printed(text))
  end)

  it("prints no addresses", function()
    expect(printed 'print({}, print, ("%s"):format({}), tostring(function() end))').to_equal "table\tfunction\ttable\tfunction\n"
  end)

  it("prints numbers so that they read back the same", function()
    expect(printed "print(0.1 + 0.2, tostring(2^53), 1e300, 0.5, 3)").to_equal "0.30000000000000004\t9007199254740992\t1e+300\t0.5\t3\n"
  end)

  it("takes numbers as text, as Lua does", function()
    expect(printed [[print(string.rep(12, 3), (12 .. ""):rep("2"), string.find(121, 2), string.gsub(121, 1, 3), string.match(45, "%d"))]])
      .to_equal "121212\t1212\t2\t323\t4\n"
    expect(report(whole "local x = string.rep(nil, 2)")).to_contain "bad argument #1 to 'rep'"
    expect(report(whole "local x = string.rep(12, 2^24)")).to_contain "more than 16 MiB"
    expect(report(whole "local x = string.rep('a')")).to_contain "bad argument #2 to 'rep'"
    expect(printed [[print(string.rep("ab", 3, ", "), ("a"):rep(2, 7), ("a"):rep(1, ","))]]).to_equal "ab, ab, ab\ta7a\ta\n"
    expect(report(whole "local x = ('a'):rep(2, ('b'):rep(2^23))")).to_contain "more than 16 MiB"
  end)

  it("has no undeclared names, with a suggestion", function()
    expect(report(whole "local a = prnt")).to_contain "recipes/x.lua:5:11: undeclared name  prnt"
    expect(report(whole "local a = prnt")).to_contain "did you mean  print?"
    expect(report(whole "width = 3")).to_contain "global  width  is written here"
  end)

  it("says why there is no clock, no file, no process, no native code", function()
    for name, why in pairs { ["os.time()"] = "no clock", ["os.execute('ls')"] = "no clock", ["io.open('x')"] = "cannot read or write files",
      ["ffi.cdef('')"] = "native code", ["debug.getinfo(1)"] = "cannot access Lua's internals", ["collectgarbage()"] = "memory is managed",
      ["package.loadlib('x')"] = "use require", ["jit.on()"] = "compilation is off", ["setfenv(1, {})"] = "fixed",
      ["rawset(_G, 'x', 1) _G.y = 2"] = "globals are strict", ["1 debug.x = 2"] = "debug.x cannot be written" } do
      expect(report(whole("local x = " .. name))).to_contain(why)
    end
    expect(report(whole "local f = require 'ffi'")).to_contain "no module or recipe"
    expect(report(whole "local f = string.dump(print)")).to_contain "no string.dump"
  end)

  it("lets modules look at _G and debug, as they do where there are other Luas", function()
    expect(printed [[
local getinfo, traceback, nothing = debug.getinfo, debug and debug.traceback, debug.nothing
local G = _G
print(type(getinfo), type(traceback), nothing, G.jit, G.os, G.string == string, G._G == G, rawget(G, "x"))
print(_G.tostring(1), G.unpack == unpack, G._VERSION == _VERSION)]]).to_equal(
      "function\tfunction\tnil\tnil\tnil\ttrue\ttrue\tnil\n1\ttrue\ttrue\n")
    expect(report(whole "local f = debug.traceback f()")).to_contain "debug.traceback is not available in a recipe"
  end)

  it("loads no bytecode", function()
    expect(report(whole [[local f = loadstring("\27LJ")]])).to_contain "only text can be loaded"
    expect(printed 'print(loadstring("return 1 + 1")())').to_equal "2\n"
    expect(report(whole 'loadstring("return os")()')).to_contain "os is not available"
  end)

  it("protects what all of Lua shares", function()
    expect(report(whole "string.rep = nil")).to_contain "string is read-only"
    expect(report(whole "rawset(string, 'rep', nil)")).to_contain "bad argument"
    expect(printed 'print(getmetatable(""), getmetatable(string), getmetatable(r))').to_equal "nil\tnil\tnil\n"
    expect(report(whole "t.optim = nil")).to_contain "t is read-only"
    expect(report(whole "r.max_duration.value = 5\nr.seed = -1")).to_contain "1 problem"
  end)

  it("does not let text fill the memory", function()
    expect(report(whole 'local x = ("x"):rep(2^31)')).to_contain "more than 16 MiB"
  end)

  it("ends patterns that take for ever, also those of a tail call and of a method", function()
    for _, call in ipairs { "s:find(p)", "(string.match(s, p))", "(s:gsub(p, ''))", "s:gmatch(p)()" } do
      local argument = "seed:=(function(s, p) return " .. call .. " end)(('a'):rep(30000), ('.-'):rep(20) .. 'b')"
      expect(report(whole(), { argument })).to_contain "stopped after 2 million instructions"
    end
  end)

  it("reads the environment only through t.env", function()
    local x, result = tree(whole 'r.run_name = t.env("TYCHO_NOT_SET_ANYWHERE", "fallback")')
    expect(x.run_name).to_equal "fallback"
    expect(result.environment.TYCHO_NOT_SET_ANYWHERE).to_equal(require("tycho.values").null)
    expect(report(whole 'local x = t.env("TYCHO_NOT_SET_ANYWHERE")')).to_contain "is not set"
  end)

  it("keeps errors that a recipe catches", function()
    expect(report(whole "pcall(function() return r.nothing end)")).to_contain "unknown key  nothing"
  end)
end)
