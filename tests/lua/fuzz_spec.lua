-- Damaged recipes and arguments: every one is loaded or reported, none breaks the host.
local fixture = require "fixture"
local lexer = require "tycho.lexer"

local kPieces = { "{", "}", "(", ")", "[", "]", "=", ".", ",", ";", "\"", "'", "\\", "\n", "--", "[[", "]]", "nil", "end", "function",
  "r", "t", "-1", "1e999", "0/0", "{}", "\0", "\255", "=nil", "t.required", "t.null", "r.model", ":", "#", "!=", " " }

-- Every load seeds math.random anew, so that damage has its own stream: 1..n.
local stream = 1
local function random(n)
  stream = (stream * 16807) % 2147483647
  return stream % n + 1
end

local function damaged(text)
  for _ = 1, random(3) do
    local at, length = random(#text), random(7) - 1
    local piece = kPieces[random(#kPieces)]
    text = text:sub(1, at - 1) .. piece .. text:sub(at + length)
  end
  return text
end

local recipe = fixture.whole [[
r.scheduler = t.sched.cosine {
  warmup = "5ba", floor = 0.1,
}
r.ckpt = { keep = 2, ["every"] = r.max_duration / 2 }
r.tags.owner, r.seed = "me", 3
r.optimizer.betas[2] = 0.5
r:check("c", function(c) return c.seed == 3, "no" end)]]

describe("fuzzed", function()
  it("recipes end in a tree or a report", function()
    for _ = 1, 800 do
      local text = damaged(recipe)
      local ok, result = pcall(fixture.load, text)
      if not ok then error(tostring(type(result) == "table" and result.message or result) .. "\n" .. text) end
      expect(type(result.tree or result.report)).to_equal(result.tree and "table" or "string")
    end
  end)

  it("sources can always be lexed", function()
    for _ = 1, 300 do
      local index = lexer.index(damaged(damaged(recipe)))
      for line = 1, 12 do require("tycho.hints.habits").at_load(index, line) end
    end
  end)

  it("arguments end in a tree or a report", function()
    local given = { "seed*=2", "stages+=[a,b]", "seed:=r.seq_len + 1", "~tags.a", "+tags.b=c", 'tags."a.b"=x', "buffer-=1MiB",
      "scheduler:=t.sched.cosine { floor = r.seed }", "groups.1.scale*=2", "eval_data.val=text{len=3}", "optimizer.betas=[0.9,0.98]", "scheduler={cosine, floor=0.5}", "tags={a=b}", "ckpt.keep=3", "optimizer.betas.2=0.1" }
    for _ = 1, 500 do
      local argument = damaged(given[random(#given)])
      local ok, result = pcall(fixture.load, recipe, { argument })
      if not ok then error(tostring(type(result) == "table" and result.message or result) .. "\n" .. argument) end
    end
  end)
end)
