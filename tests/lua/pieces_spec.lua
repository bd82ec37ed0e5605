-- Specs of lua/tycho/overrides/pieces.lua: arguments that blanks took apart.
local pieces = require "tycho.overrides.pieces"

-- What is left of some words, and the hints of what is told.
local function joined(...)
  local arguments, left, hints = {}, {}, {}
  for i, text in ipairs { ... } do arguments[i] = { argument = i + 1, text = text } end
  for _, one in ipairs(pieces.joined(arguments, function(_, _, problem) hints[#hints + 1] = problem.hint end)) do left[#left + 1] = one.text end
  return { left, hints }
end

describe("words that belong together", function()
  it("are one argument with a hint", function()
    for _, words in ipairs { { "seed", "=", "3" }, { "seed", "=3" }, { "seed=", "3" }, { "seed:", "3" }, { "seed", ":", "3" }, { "seed", "3" } } do
      expect(joined(unpack(words))).to_equal { {}, { "write  seed=3" } }
    end
    expect(joined("optimizer.lr", "*=", "0.5", "seed=1")).to_equal { { "seed=1" }, { "write  'optimizer.lr*=0.5'" } }
  end)

  it("are not those that stand for themselves", function()
    for _, words in ipairs { { "seed=3", "seq_len=5" }, { "~clip.norm", "seed=3" }, { "@a.txt", "seed=3" }, { "seed", "seq_len=5" },
      { "run_name=", "seed=3" }, { "run_name=", "~seed" }, { "a.lua", "b" }, { "seed", "over.txt" } } do
      expect(joined(unpack(words))).to_equal { words, {} }
    end
  end)
end)
