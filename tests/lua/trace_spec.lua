-- Specs of lua/tycho/maths: what a traced function becomes, and what is said of functions that cannot be traced.
local session = require "tycho.session"
local trace = require "tycho.maths.trace"

local kSchema = { type = "struct", fields = { { name = "run_name", type = "string", default = "run", help = "" },
  { name = "fn", type = "function", help = "" } } }
local kInputs = { { name = "p" }, { name = "g" }, { name = "v" }, { name = "h.lr", scalar = true } }

-- Traces the function of p, g, v and lr that the lines make of a recipe, whose line 3 is the first of them.
local function load(lines, inputs)
  local made
  local result = session.load {
    file = "recipes/x.lua", schema = kSchema, arguments = {}, facts = function() return {} end,
    read_file = function() return 'local t = require "tycho"\nlocal r = t.recipe "x"\n' .. lines .. "\nreturn r\n" end,
    check_tree = function() return {} end,
    output = function() end,
    on_finished = function(of, recipe)
      local fn = recipe.root.values.fn.fn
      made = trace { session = of, fn = fn, inputs = inputs or kInputs, run = function(s)
        return { p = fn(s.p, s.g, s.v, s["h.lr"]) }
      end }
    end,
  }
  return made, result.report
end

local function text(body, inputs)
  local made, report = load("r.fn = function(p, g, v, lr)\n" .. body .. "\nend", inputs)
  return made and made.text or error(report, 2)
end

-- What is said of a function whose body begins on line 4.
local function report(body, inputs)
  local made, said = load("r.fn = function(p, g, v, lr)\n" .. body .. "\nend", inputs)
  if made then error("expected a report, got " .. made.text, 2) end
  return said
end

describe("a traced function", function()
  it("becomes its formula", function()
    expect(text "return p - lr * g").to_equal "p = p - h.lr * g\n"
    expect(text "return -(p ^ 2) / (1 + t.sqrt(v))").to_equal "p = -p ^ 2 / (1 + sqrt(v))\n"
    expect(text "return t.where(g:gt(0), p, t.clamp(v, -1, 1))").to_equal "p = where(g > 0, p, clamp(v, -1, 1))\n"
    expect(text "return t.where(t.both(g:gt(0), t.negate(p:eq(v))), p, v)").to_equal "p = where(g > 0 and not (p == v), p, v)\n"
    expect(text "return t.fma(p, g, t.min(p, g, v))").to_equal "p = fma(p, g, min(min(p, g), v))\n"
  end)

  it("has every operation", function()
    local made = {}
    for op in ("abs sign floor sqrt rsqrt exp log tanh sigmoid erf"):gmatch "%a+" do made[#made + 1] = "t." .. op .. "(p)" end
    for op in ("lt le gt ge eq ne"):gmatch "%a+" do made[#made + 1] = "t.where(p:" .. op .. "(g), p, g)" end
    expect(text("return " .. table.concat(made, " + ") .. " + t.pow(p, g) + t.max(p, g) + t.where(t.either(p:lt(0), g:lt(0)), 1, 2)"))
      .to_contain "rsqrt(p)"
  end)

  it("accepts what math has an operation for", function()
    expect(text "return math.sqrt(p) + math.max(p, g) + math.abs(v) + math.pow(p, 2)").to_equal "p = sqrt(p) + max(p, g) + abs(v) + p ^ 2\n"
    expect(text "return p * math.floor(2.5) * math.max(1, 2)").to_equal "p = p * 2 * 2\n"
    expect(report "return math.sin(p)").to_contain "recipes/x.lua:4:13: math.sin cannot be traced"
    expect(report "return p * tonumber(g)").to_contain "tonumber cannot be traced"
  end)

  it("unrolls loops and takes plain values of Lua for what they are", function()
    expect(text "for _ = 1, 3 do p = p * g end\nreturn p").to_equal "p = p * g * g * g\n"
    expect(text "local nesterov = true\nif nesterov then return g end\nreturn p").to_equal "p = g\n"
    expect(text "return t.where(true, p, g)").to_equal "p = p\n"
    expect(text "return 1").to_equal "p = 1\n"
  end)

  it("keeps numbers as they are", function()
    expect(text "return p * 0.1 + 1e-45 + 1/0").to_equal "p = p * 0.1 + 1e-45 + inf\n"
    expect(text "return p * -0.0").to_equal "p = p * -0\n"
  end)

  it("is computed on plain numbers, in functions and elsewhere", function()
    local made = load [[
assert(t.sqrt(4) == 2 and t.max(1, 3, 2) == 3 and t.min(1, 2) == 1 and t.abs(-2) == 2 and t.sign(-3) == -1 and t.pow(2, 3) == 8)
assert(t.floor(2.5) == 2 and t.exp(0) == 1 and t.log(1) == 0 and t.clamp(5, 0, 1) == 1 and t.fma(2, 3, 4) == 10 and t.rsqrt(4) == 0.5)
assert(math.abs(t.erf(1) - 0.84270079294971) < 1e-13 and t.sigmoid(0) == 0.5 and t.where(true, 1, 2) == 1 and t.both(true, false) == false)
for _, x in ipairs { 0.1, 0.3, 1.7, 9.1, 40.3 } do
  assert(t.exp(x) == math.exp(x) and t.log(x) == math.log(x) and t.tanh(x) == math.tanh(x) and t.sqrt(x) == math.sqrt(x))
end
r.fn = function(p) for _ = 1, t.floor(5 / 2) do p = p * t.sqrt(4) end if t.max(1, 2) > 1 then return p * t.erf(1) end return p end]]
    expect(made.text).to_contain "p = p * 2 * 2 * 0.8427"
    expect(text "return p * t.where(t.max(1, 2):gt(1), 3, 4)").to_contain "p * "
    for body, said in pairs { ["t.sqrt(nil)"] = "expected a number or a symbol, got nil", ["t.max(1)"] = "t.max expects two values or more",
      ["t.clamp(1, 2, 0)"] = "expects low <= high", ["t.where(1, 2, 3)"] = "expected a condition", ["t.mm(1, 2)"] = "mm works on matrices",
      ["t.every(2, function() return 1 end, 2)"] = "t.every chooses between steps", ["t.both(1, 2)"] = "expected a condition" } do
      local _, got = load("local x = " .. body .. "\nr.fn = function(p) return p * x end")
      expect(got).to_contain(said)
      expect(got).to_contain "recipes/x.lua:3"
    end
  end)

  it("refuses NaN that constants make, at its line", function()
    for body, line in pairs { ["return p + 0 / 0"] = 4, ["return t.where(p:gt(0 / 0), p, 1)"] = 4, ["local x = t.log(-1)\nreturn p * x"] = 4,
      ["local x = p * 2\nreturn x + t.sqrt(-2)"] = 5, ["return p ^ t.pow(-8, 1 / 3)"] = 4, ["return p * (math.huge - math.huge)"] = 4,
      ["return 0 / 0"] = 4 } do
      expect(report(body)).to_contain(("recipes/x.lua:%d: expected numbers, got NaN"):format(line))
    end
    expect(text "return t.where(p:gt(0), p, t.log(0))").to_equal "p = where(p > 0, p, -inf)\n"
    expect(text "return t.where(true, p, 0 / 0)").to_equal "p = p\n"
  end)

  it("reads shapes", function()
    local inputs = { { name = "p", shape = { 4, 8 }, fields = { rows = 4, columns = 8, hidden_matrix = true } }, { name = "g", shape = { 4, 8 } },
      { name = "v", shape = { 4, 1 } }, { name = "h.lr", scalar = true } }
    expect(text("if p.hidden_matrix then return p * (p.rows / p.columns) + v end", inputs)).to_equal "p = p * 0.5 + v\n"
    expect(text('return p / g:mean("row") + g:sum("matrix")', inputs)).to_equal 'p = p / mean(g, "row") + sum(g, "matrix")\n'
    expect(report("return p.height", inputs)).to_contain "recipes/x.lua:4:10: a symbol has no field or method height"
    expect(report('return p:sum("rows")', inputs)).to_contain 'x:sum expects "row", "column", "matrix" or "tensor"'
  end)
end)

describe("what cannot be traced", function()
  it("is named at its line, with what to write instead", function()
    for body, said in pairs { ["return p < g"] = "< and > cannot be traced", ["return p >= 1"] = "<= and >= cannot be traced",
      ["return p == nil"] = "== and ~= cannot be traced", ["return p ~= g"] = "x:ne(y)", ["return p % 2"] = "x - y * t.floor(x / y)",
      ["return #p"] = "# cannot be traced", ["return p .. ''"] = ".. cannot be traced", ["return ('%s'):format(p)"] = "a symbol has no text",
      ["return tostring(p)"] = "a symbol has no text", ["print(p)"] = "a symbol has no text", ["p.x = 1"] = "a symbol takes no fields",
      ["return p(g)"] = "a symbol cannot be called", ["return p.sqrt"] = "write  t.sqrt(x)", ["for _ in pairs(p) do end\nreturn p"] = "pairs cannot be traced", ["return p + nil"] = "a field that does not exist is nil, and so is a local before it is set",
      ["return p + {}"] = "got a table", ["return p + '1'"] = "got a string", ["return t.sqrt()"] = "t.sqrt expects 1 value, got 0",
      ["return p + g:gt(0)"] = "expected a number, got a condition", ["return t.where(p, p, g)"] = "expected a condition such as x:gt(y), got a number",
      ["return t.where(p:gt(0), p, p:gt(g))"] = "one of each", ["return t.max(p)"] = "two values or more" } do
      local got = report(body)
      expect(got).to_contain "recipes/x.lua:4"
      expect(got).to_contain(said)
    end
  end)

  it("is what depends on a comparison by if, and, or and not", function()
    for _, body in ipairs { "if g:gt(0) then p = p * 2 end\nreturn p", "return g:gt(0) and p or g", "return t.where(not g:gt(0), p, g)",
      "return t.where(g:gt(0) and p:gt(0), p, g)", "return t.where(g:gt(0) or p:gt(0), p, g)", "if not g:gt(0) then return p end\nreturn g",
      "while g:gt(0) do p = p * 2 break end\nreturn p", "if g:lt(0) and not g:gt(0) then return p * 2 end\nreturn p" } do
      local got = report(body)
      expect(got).to_contain "recipes/x.lua:4"
      expect(got).to_contain "depends on whether this comparison holds"
      expect(got).to_contain "t.where(condition, a, b)"
    end
    expect(report "local up = g:gt(0)\nv = v * 2\nif up then\np = p * 2\nend\nreturn p + v").to_contain(
      "what is computed at recipes/x.lua:7 depends on whether this comparison holds")
  end)

  it("is what Lua does with the number itself", function()
    for _, body in ipairs { "local signs = { [0] = 5, [1] = 7 }\nreturn p * (signs[g] or 1)", "return type(p) == 'number' and p * 2 or p" } do
      local got = report(body)
      expect(got).to_contain "recipes/x.lua"
      expect(got).to_contain "the function gives another p for plain numbers: with p = "
      expect(got).to_contain "list[x] finds nothing"
    end
    local inputs = { { name = "p", shape = { 4, 8 }, fields = { rows = 4 } }, { name = "g", shape = { 4, 8 } }, { name = "v", shape = { 4, 8 } },
      { name = "h.lr", scalar = true } }
    expect(text('return math.max(p, g) + p.rows + t.where(v:gt(0), p:mean("row"), t.sqrt(2))', inputs)).to_contain "where(v > 0"
  end)

  it("leaves comparisons alone that only conditions use", function()
    expect(text "local up = g:gt(0)\nreturn t.where(up, p, g) + t.where(t.both(up, p:lt(1)), 1, 0)").to_contain "where(v1, p, g)"
  end)

  it("is a function that is not pure", function()
    local made, said = load "local n = 0\nr.fn = function(p)\nn = n + 1\nreturn p * n\nend"
    expect(made).to_equal(nil)
    expect(said).to_contain "recipes/x.lua:6: the function did something else when it was called again"
  end)

  it("is a symbol that was kept", function()
    local made, said = load "local kept\nr.fn = function(p)\nlocal old = kept or p\nkept = p\nreturn p * old\nend"
    expect(made).to_equal(nil)
    expect(said).to_contain "recipes/x.lua:7: a symbol was kept and is used later"
  end)

  it("ends when it does not end", function()
    expect(report "while true do p = p * 2 end").to_contain "more than 4096 operations"
    expect(report "while true do end").to_contain "is there an endless loop?"
    expect(report "local function again() return again() + p end\nreturn again()").to_contain "endless recursion"
    expect(report "local x = p\nreturn x.y.z").to_contain "recipes/x.lua:5"
    expect(report "local x\nx.y = p\nreturn p").to_contain "recipes/x.lua:5: attempt to index local 'x'"
    expect(report "for _ = 1, 10 do\nwhile true do end\nend\nreturn p").to_contain "recipes/x.lua:5: stopped after"
  end)

  it("is another result than numbers", function()
    for _, body in ipairs { "return 'x'", "return {}", "return print" } do
      expect(report(body)).to_contain "expected a number or a symbol, got"
    end
    expect(report "return p:gt(0)").to_contain "expected numbers for the output"
  end)

  it("is named where C++ finds it", function()
    local inputs = { { name = "p", shape = { 4, 8 } }, { name = "g", shape = { 8, 4 } }, { name = "v" }, { name = "h.lr", scalar = true } }
    expect(report("local x = p * 2\nreturn x + g", inputs)).to_contain "recipes/x.lua:5: add: expected shapes that broadcast, got [4, 8] and [8, 4]"
  end)
end)
