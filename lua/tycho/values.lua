-- Numbers with units: durations ("100ba") and sizes ("64MiB"), with arithmetic within one unit.
local native = require "tycho.native"

local M = {}

-- Stands for "no value" where a key is optional; reading such a key gives nil.
M.null = native.null
-- Marks a key that whoever extends the recipe must set.
M.required = setmetatable({}, { __tostring = function() return "t.required" end })

-- Gives a key its default back, and takes a name out of an open table.
M.unset = setmetatable({}, { __tostring = function() return "t.unset" end })

local Quantity = { __metatable = "quantity" }

local function is_quantity(x) return debug.getmetatable(x) == Quantity end
M.is_quantity = is_quantity

-- class: "duration" or "bytes"; unit: one that native.duration_text knows, or "B".
function M.quantity(class, value, unit) return setmetatable({ class = class, value = value, unit = unit }, Quantity) end

function M.copy(q) return M.quantity(q.class, q.value, q.unit) end

-- Reads "100ba", or "15%" of the run; nil and a message when the text is not a duration.
function M.duration(text)
  local percent = tonumber(text:match("^([%d%.]+)%%$"))
  if percent then return M.quantity("duration", percent / 100, "dur") end
  local value, unit = native.duration(text)
  if not value then return nil, unit end
  return M.quantity("duration", value, unit)
end

-- Reads "64MiB"; nil and a message when the text is not a size.
function M.bytes(text)
  local value, message = native.bytes(text)
  if not value then return nil, message end
  return M.quantity("bytes", value, "B")
end

function M.text(q)
  if q.class == "bytes" then return native.bytes_text(q.value) end
  return native.duration_text(q.value, q.unit)
end

local function same_unit(a, b, what)
  if is_quantity(a) and is_quantity(b) and a.class == b.class and a.unit == b.unit then return end
  local function show(x) return is_quantity(x) and M.text(x) or tostring(x) end
  error(("cannot %s %s and %s: only values of one unit go together"):format(what, show(a), show(b)), 3)
end

Quantity.__tostring = M.text
Quantity.__concat = function(a, b) return tostring(a) .. tostring(b) end
Quantity.__eq = function(a, b) return a.class == b.class and a.unit == b.unit and a.value == b.value end
Quantity.__lt = function(a, b) same_unit(a, b, "compare") return a.value < b.value end
Quantity.__le = function(a, b) same_unit(a, b, "compare") return a.value <= b.value end
Quantity.__unm = function(a) return M.quantity(a.class, -a.value, a.unit) end
Quantity.__add = function(a, b) same_unit(a, b, "add") return M.quantity(a.class, a.value + b.value, a.unit) end
Quantity.__sub = function(a, b) same_unit(a, b, "subtract") return M.quantity(a.class, a.value - b.value, a.unit) end
Quantity.__mul = function(a, b)
  if type(a) == "number" then a, b = b, a end
  if type(b) ~= "number" then error(("cannot multiply %s by %s: one of them must be a plain number")
    :format(tostring(a), tostring(b)), 2) end
  return M.quantity(a.class, a.value * b, a.unit)
end
-- A quantity over a number is a quantity; over one of the same unit it is a plain ratio.
Quantity.__div = function(a, b)
  if is_quantity(a) and type(b) == "number" then return M.quantity(a.class, a.value / b, a.unit) end
  same_unit(a, b, "divide")
  return a.value / b.value
end

-- The shortest text that reads back as the same number.
function M.number_text(x) return native.number_text(x) end

local kMostHoles = 8   -- that are shown in a row

-- "nil, " for each value that a list lacks right before this place.
function M.holes(list, at)
  local count = 0
  while count < kMostHoles and at - count > 1 and list[at - count - 1] == nil do count = count + 1 end
  return ("nil, "):rep(count)
end

return M
