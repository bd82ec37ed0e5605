-- Specs of lua/tycho/errors.lua, and of t.deprecate and t.secret beside it.
local fixture = require "fixture"
local native = require "tycho.native"
local tree, report, whole, printed = fixture.tree, fixture.report, fixture.whole, fixture.prints

describe("t.try", function()
  it("gives what the function gave, or an error with its place", function()
    expect(printed "print(t.try(function(a, b) return a + b, nil, 'x' end, 1, 2))").to_equal "true\t3\tnil\tx\n"
    expect(printed [[
local ok, wrong = t.try(function()
  error("oh")
end)
print(ok, wrong.code, wrong.message, wrong.where)]]).to_equal "false\tE_FAILURE\toh\trecipes/x.lua:6\n"
  end)

  it("keeps error objects and what is no text", function()
    expect(printed "print(select(2, t.try(error, { message = 'm', code = 'E_X' })).code)").to_equal "E_X\n"
    expect(printed "local e = select(2, t.try(error, { 3 })) print(e.message, e.value[1])").to_equal
      "error was called with  { 3 }\t3\n"
  end)

  it("does not catch what the report holds already", function()
    expect(report(whole "t.try(function() r.sed = 3 end)\nt.try(function() return t.nothing end)\nr.seed = -1")).to_contain "2 problems"
  end)

  it("wants a function", function() expect(report(whole "t.try(3)")).to_contain "t.try expects a function" end)
end)

describe("t.fail", function()
  it("raises a code and a text at the line that calls it", function()
    expect(report(whole 't.fail("E_DATA", "no file %s, %d", "a", 3)')).to_contain "recipes/x.lua:5: E_DATA  no file a, 3"
    expect(printed [[
local _, wrong = t.try(function() t.fail("E_DATA", "100%") end)
print(wrong.code, wrong.message, wrong.where, wrong)]]).to_equal "E_DATA\t100%\trecipes/x.lua:5\tE_DATA  100%\n"
  end)

  it("wants a code", function() expect(report(whole 't.fail("oh")')).to_contain "t.fail expects a code and a text" end)
end)

describe("what is raised", function()
  it("is told without addresses", function()
    expect(report(whole "error {}")).to_contain "error was called with  {}"
    expect(report(whole 'r:check("c", function() error { 1, f = print } end)')).to_contain
      'check "c" failed: error was called with  { 1, f = function }'
  end)

  it("cannot choose an exit code", function()
    expect(report(whole "error { message = 'mine', exit = 0 }")).to_contain "recipes/x.lua:5: mine"
    expect(report(whole "t.try(function() error { message = 'kept', exit = 143 } end) r.sed = 1")).to_contain "sed"
    expect(report(whole "r:check('c', function() error { message = 'mine', exit = 0 } end)")).to_contain
      'check "c" failed: mine'
  end)

  it("is told in the words of recipes when a function yields", function()
    local text = report(whole "coroutine.yield()")
    expect(text).to_contain "recipes/x.lua:5"
    expect(text:find("C-call", 1, true)).to_be_nil()
  end)
end)

describe("t.deprecate", function()
  it("warns where the function is called that says so", function()
    tree(whole [[
local function small() t.deprecate("sizes.small", "sizes.tiny", "0.3") return 8 end
r.model.width = small()]])
    expect(fixture.printed).to_contain "recipes/x.lua:6: warning: sizes.small is deprecated and will be removed in version 0.3"
    expect(fixture.printed).to_contain "write  sizes.tiny"
  end)
end)

describe("t.secret", function()
  it("reads what no record shows", function()
    local set = { SPEC_HIDDEN = "canary-51", SPEC_API_KEY = "canary-52", SPEC_PIN = "1234" }
    local env = native.env
    native.env = function(name) return set[name] or env(name) end
    local _, result = tree(whole("local hidden = t.secret 'SPEC_HIDDEN'\nlocal key = t.env 'SPEC_API_KEY'\n"
      .. "print(hidden == t.env 'SPEC_HIDDEN', key, t.secret('TYCHO_NOT_SET', 'd'))"))
    expect(fixture.printed).to_equal "true\tcanary-52\td\n"   -- masked by native.output, which a spec replaces
    expect(result.environment.SPEC_HIDDEN).to_equal "***"
    expect(result.environment.SPEC_API_KEY).to_equal "***"
    tree(whole "local pin = t.secret 'SPEC_PIN'")
    expect(fixture.printed).to_contain "recipes/x.lua:5: warning: SPEC_PIN is too short to be masked"
    native.env = env
    expect(report(whole "t.secret 'TYCHO_NOT_SET'")).to_contain 'give a default:  t.secret("TYCHO_NOT_SET", ...)'
  end)
end)
