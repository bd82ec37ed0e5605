-- += -= *= /= of arguments: what the operand must be, and what comes out of a value and an operand.
local lists = require "tycho.lists"
local literal = require "tycho.overrides.literal"
local schema = require "tycho.schema"
local values = require "tycho.values"

local M = {}

local kVerbs = { ["+="] = "add to", ["-="] = "take from", ["*="] = "multiply", ["/="] = "divide" }

local function number_operand(op, text)
  local number = tonumber(text)
  if not number then return nil, ("%s needs a plain number"):format(op) end
  if op == "/=" and number == 0 then return nil, "cannot divide by 0" end
  return number
end

local function quantity_operand(op, spec, text)
  if op == "*=" or op == "/=" then return number_operand(op, text) end
  local parse = spec.type == "bytes" and values.bytes or values.duration
  local quantity, message = parse(text)
  if not quantity and tonumber(text) then message = "expected a unit, as in " .. schema.example(spec) end
  return quantity, message
end

-- The operand of `op` for a key of this spec, or nil and what was wanted.
function M.operand(spec, op, text)
  local kind = spec.type
  if kind == "number" or kind == "integer" then return number_operand(op, text) end
  if kind == "duration" or kind == "bytes" then return quantity_operand(op, spec, text) end
  if kind == "string" and op == "+=" then return text end
  if kind == "list" and (op == "+=" or op == "-=") then
    local open = { type = "list", item = spec.item }
    return literal.read(open, text:find("^[%[{]") and text or "[" .. text .. "]")
  end
  local hint = kind == "struct" and "; name one of its keys" or kind == "component" and "; name one of its keys"
    or "; write key=value"
  return nil, ("%s does not work on a key that is %s%s"):format(op, schema.describe_shortly(spec), hint)
end

local function compute(op, value, operand)
  if type(value) == "string" then return value .. operand end
  if type(value) == "table" and not values.is_quantity(value) then
    return op == "+=" and lists.inserted(value, operand, #value + 1) or (lists.without(value, operand))
  end
  if op == "+=" then return value + operand end
  if op == "-=" then return value - operand end
  if op == "*=" then return value * operand end
  return value / operand
end

-- The new value of a key of this spec after `op` with the operand that the text stands for; nil and the reason otherwise. The
-- result is checked like any other value.
function M.apply(spec, op, value, text)
  local operand, message = M.operand(spec, op, text)
  if operand == nil then return nil, message end
  local ok, result = pcall(compute, op, value, operand)
  if ok then return result end
  return nil, (tostring(result):gsub("^[^:]*:%d+: ", ""))
end

-- "nothing to multiply", for keys that never get a value.
function M.verb(op) return kVerbs[op] end

return M
