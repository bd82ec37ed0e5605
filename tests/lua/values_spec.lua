-- Specs of lua/tycho/values.lua: units.
local values = require "tycho.values"

local function ba(n) return values.quantity("duration", n, "ba") end

describe("durations", function()
  it("read and print their unit", function()
    expect(tostring(values.duration("100ba"))).to_equal "100ba"
    expect(tostring(values.duration("2e9tok"))).to_equal "2000000000tok"
    expect(tostring(values.duration("1.5h"))).to_equal "5400s"
  end)

  it("refuse other units and say which there are", function()
    local value, message = values.duration("3steps")
    expect(value).to_be_nil()
    expect(message).to_contain "ba"
  end)

  it("add, scale and compare within one unit", function()
    expect(tostring(ba(100) + ba(20))).to_equal "120ba"
    expect(tostring(2 * ba(100) / 4)).to_equal "50ba"
    expect(ba(100) / ba(50)).to_equal(2)
    expect(ba(1) < ba(2)).to_equal(true)
    expect(ba(3) == ba(3)).to_equal(true)
    expect("every " .. ba(3)).to_equal "every 3ba"
  end)

  it("refuse arithmetic between units", function()
    local tok = values.quantity("duration", 1, "tok")
    expect(function() return ba(1) + tok end).to_fail_with "only values of one unit"
    expect(function() return ba(1) < tok end).to_fail_with "only values of one unit"
    expect(function() return ba(1) * ba(1) end).to_fail_with "plain number"
  end)
end)

describe("sizes", function()
  it("read and print", function()
    expect(tostring(values.bytes("64MiB"))).to_equal "64MiB"
    expect(values.bytes("64 apples")).to_be_nil()
  end)
end)

describe("numbers", function()
  it("print the shortest text that reads back", function()
    for _, x in ipairs { 0.1 + 0.2, 2 ^ 53, 6e-4, 1e-8, 1 / 3, 1e300, -5 } do
      expect(tonumber(values.number_text(x))).to_equal(x)
    end
    expect(values.number_text(2 ^ 53)).to_equal "9007199254740992"
    expect(values.number_text(6e-4)).to_equal "0.0006"
  end)
end)
