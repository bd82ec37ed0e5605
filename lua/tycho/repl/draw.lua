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

-- plot(y), plot(x, y), plot(x, { a = y1, b = y2 }), plot "loss": the last is from the record that metrics_path() names.
function M.plot(metrics_path, x, y)
  if type(x) == "string" then return drawing.plot_metric(metrics_path(), x) end
  if is(x, "losses") then x = x.losses end
  if y == nil then
    y = numbers(x, "plot")
    x = counted(#y)
  end
  x = numbers(x, "plot")
  if type(y) == "table" and #y == 0 and next(y) ~= nil then
    local names, out = {}, {}
    for name in pairs(y) do names[#names + 1] = tostring(name) end
    table.sort(names)
    for i, name in ipairs(names) do out[i] = drawing.plot(x, numbers(y[name], "plot"), name) end
    return table.concat(out, "\n")
  end
  y = numbers(y, "plot")
  if #x ~= #y then error(("plot: x has %d values, y has %d"):format(#x, #y), 0) end
  return drawing.plot(x, y, "")
end

-- hist(list), hist(tensor): one row of bars.
function M.histogram(values, bins)
  if is(values, "histogram") then return tostring(values:histogram(bins)) end
  return drawing.histogram(numbers(values, "hist"), bins or 13)
end

return M
