-- Specs of lua/tycho/lexer.lua: where keys and values stand.
local lexer = require "tycho.lexer"

local source = [==[
local r = t.recipe "x" -- r.seq_len = 1
r.model = t.model.llama {
  width = 256, ["layers"] = 4,
  f = function(a, b) return { 1, b = 2 } end,
  betas = { 0.9, -0.95 },
}
r.optimizer.lrr = 6e-4
r.ckpt = { every = [[
10ba]],
  keep = -3 }
r.a.x, r.a.y = 1, 2
]==]
local index = lexer.index(source)

describe("lexer", function()
  it("splits numbers, strings, comments and operators", function()
    local texts = {}
    for i, token in ipairs(lexer.tokens('x.y=3-4e-2 --[[ no\n]] .. "a\\"b" [=[long]=]')) do texts[i] = token.text end
    expect(texts).to_equal { "x", ".", "y", "=", "3", "-", "4e-2", "..", '"a\\"b"', "[=[long]=]" }
  end)

  it("finds keys of a constructor on their own lines", function()
    local c = lexer.constructor(index, 2, "llama", { "width", "layers", "betas" })
    expect({ c.entries.width.key.line, c.entries.width.key.col }).to_equal { 3, 3 }
    expect({ c.entries.layers.key.line, c.entries.layers.value.text }).to_equal { 3, "4" }
    expect(c.entries.b).to_be_nil()
  end)

  it("takes a sign and its number as one value", function()
    local c = lexer.constructor(index, 2, "llama", {}).entries.betas.constructor
    expect({ c.entries[2].value.text, c.entries[2].value.len }).to_equal { "-0.95", 5 }
  end)

  it("finds the target and the value of an assignment", function()
    local key, value = lexer.assignment(index, 7, "lrr")
    expect({ key.line, key.col, key.len, value.text }).to_equal { 7, 13, 3, "6e-4" }
  end)

  it("finds a statement that ends lines below its start", function()
    local key = lexer.assignment(index, 10, "ckpt")
    expect({ key.line, key.col }).to_equal { 8, 3 }
    expect(lexer.constructor(index, 10, "ckpt", { "keep" }).entries.keep.value.text).to_equal "-3"
  end)

  it("keeps apart the targets of one line", function()
    expect(lexer.assignment(index, 11, "x").col).to_equal(5)
    expect(lexer.assignment(index, 11, "y").col).to_equal(12)
  end)

  -- A lexer that looked from each to its end would need 10^9 steps, and the limits of this run would end it.
  it("takes no longer for braces in braces", function()
    expect(#lexer.index(("x = {"):rep(30000)).constructors).to_equal(30000)
    expect(#lexer.index(("{"):rep(45000) .. ("}"):rep(45000)).constructors).to_equal(45000)
  end)

  it("recognises habits of other languages", function()
    local function advice(text)
      local _, hint = require("tycho.hints.habits").at_load(lexer.index(text), 1)
      return hint
    end
    expect(advice "if a != b then").to_contain "~="
    expect(advice "x += 1").to_contain "x = x + 1"
    expect(advice "# a comment").to_contain "--"
    expect(advice "for i in range(3) do").to_contain "for i = 1, n do"
    expect(advice "x = None").to_contain "t.null"
    expect(advice "lr: 3").to_contain "="
    expect(advice "r.lr = 3").to_be_nil()
  end)
end)
