-- Specs of lua/tycho/schema.lua: values against what a key says of them.
local literal = require "tycho.overrides.literal"
local schema = require "tycho.schema"

describe("a number that may be left to Tycho", function()
  local spec = { type = "number", min = 1, word = "auto" }

  it("is a number or the word", function()
    expect({ schema.check(spec, "auto"), schema.check(spec, 2.5) }).to_equal { "auto", 2.5 }
  end)

  it("is read so from an argument", function()
    expect({ literal.read(spec, "auto"), literal.read(spec, '"auto"'), literal.read(spec, "2.5") }).to_equal { "auto", "auto", 2.5 }
    expect((literal.read(spec, "automatic"))).to_equal(nil)
  end)

  it("is nothing else, and says so", function()
    for _, wrong in ipairs { "automatic", 0.5, "2", true } do
      local value, message = schema.check(spec, wrong)
      expect(value).to_equal(nil)
      expect(message).to_contain 'number >= 1, or "auto"'
    end
    expect((schema.check({ type = "number", min = 1 }, "auto"))).to_equal(nil)
  end)
end)
