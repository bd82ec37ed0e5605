-- Curves and histograms of lists, of tensors, and of what a run has recorded.
local drawing = require "tycho.drawing"

local M = {}

-- Whether an object of the run has a member: a tensor can be listed, the result of steps has losses.
local function is(value, member)
  if type(value) ~= "userdata" then return false end
  local known, found = pcall(function() return value[member] end)
  return known and found ~= nil
end

local function numbers(value, what)
  if is(value, "tolist") then value = value:tolist() end
  if type(value) ~= "table" then error(("%s expects a list of numbers or a tensor"):format(what), 0) end
  for i = 1, #value do
    if type(value[i]) ~= "number" then error(("%s: value %d is not a number"):format(what, i), 0) end
  end
  return value
end

local function counted(n)
  local out = {}
  for i = 1, n do out[i] = i end
  return out
end

-- plot(y), plot(x, y), plot(x, { a = y1, b = y2 }), plot("loss", ...): the last is from the record that metrics_path() names.
function M.plot(metrics_path, x, ...)
  local y = ...
  if type(x) == "string" then
    for _, name in ipairs { ... } do
      if type(name) ~= "string" then error(("plot: expected names of metrics after %q, got a %s"):format(x, type(name)), 0) end
    end
    return drawing.plot_metrics(metrics_path(), x, ...)
  end
  if is(x, "losses") then x = x.losses end
  if y == nil then
    y = numbers(x, "plot")
    x = counted(#y)
  end
  x = numbers(x, "plot")
  local named = type(y) == "table" and #y == 0 and next(y) ~= nil and y or { [""] = y }
  local names, lists = {}, {}
  for name in pairs(named) do names[#names + 1] = name end
  table.sort(names, function(a, b) return tostring(a) < tostring(b) end)
  for i, name in ipairs(names) do
    lists[i], names[i] = numbers(named[name], "plot"), tostring(name)
    if #x ~= #lists[i] then error(("plot: x has %d values, y has %d"):format(#x, #lists[i]), 0) end
  end
  return drawing.plot(x, lists, names)
end

-- hist(list), hist(tensor): one row of bars.
function M.histogram(values, bins)
  if is(values, "histogram") then return tostring(values:histogram(bins)) end
  return drawing.histogram(numbers(values, "hist"), bins or 13)
end

return M
