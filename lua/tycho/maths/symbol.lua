-- Symbols: what stands for a number while a function of a recipe is traced. They are an FFI type because only its metamethods
-- see every comparison, also == with nil; these are Lua and call no C++.
local ffi = require "ffi"

local M = {}

-- What metamethods call: operate(op, ...), refuse(name, message, hint) and field(symbol, key). recording.lua sets them.
local on = {}
M.on = on

local meta = {}
for name, op in pairs { add = "add", sub = "sub", mul = "mul", div = "div", pow = "pow" } do
  meta["__" .. name] = function(a, b) return on.operate(op, a, b) end
end

function meta.__unm(x) return on.operate("neg", x) end
function meta.__index(x, key) return on.field(x, key) end

-- Lua turns the result of its comparisons into true or false, so they cannot be traced.
local function refuse(name, what, hint)
  return function() return on.refuse(name, what .. ": a symbol stands for numbers that the run will have", hint) end
end

local kChoice = "; t.where(condition, a, b) chooses"
meta.__lt = refuse("<", "< and > cannot be traced", "write  x:lt(y)  or  x:gt(y)" .. kChoice)
meta.__le = refuse("<=", "<= and >= cannot be traced", "write  x:le(y)  or  x:ge(y)" .. kChoice)
meta.__eq = refuse("==", "== and ~= cannot be traced", "write  x:eq(y)  or  x:ne(y)" .. kChoice)
meta.__mod = refuse("%", "% cannot be traced", "write  x - y * t.floor(x / y)")
meta.__len = refuse("#", "# cannot be traced", "p.rows and p.columns are plain numbers")
meta.__concat = refuse("..", ".. cannot be traced", "text is made of plain values only")
meta.__tostring = refuse("tostring", "a symbol has no text", "tycho config RECIPE --why KEY  prints the whole formula")
meta.__call = refuse("(", "a symbol cannot be called", "write * between the factors of a product")
function meta.__newindex(_, key)
  on.refuse(tostring(key), "a symbol takes no fields", "state is assigned as  s.NAME = ...")
end

local make = ffi.metatype("struct { uint32_t tracing__, node__; }", meta)

-- The symbol of a node, counted from 0, in one tracing.
function M.new(tracing, node) return make(tracing, node) end

-- Recipes have no other cdata.
function M.is(x) return type(x) == "cdata" end

-- The tracing and the node of a symbol.
function M.parts(x) return x.tracing__, x.node__ end

return M
