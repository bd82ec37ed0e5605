-- The formulas of a resolved recipe, as people read them.
local native = require "tycho.native"
local schema = require "tycho.schema"

local M = {}

local function is_expression(value) return type(value) == "table" and value.nodes ~= nil and value.outputs ~= nil and value.inputs ~= nil end

-- Which parameters an entry of an optimizer's updates is for.
local function parameters_of(update)
  local what = update.hidden and "matrices of blocks" or "other parameters"
  return update.shape and ("%s of %s"):format(what, table.concat(update.shape, " x ")) or what
end

local kOutsideOfBlocks = { embedding = true, positions = true, head = true }

local function layers_of(range)
  if kOutsideOfBlocks[range.role] then return "" end
  return range.first == range.last and (" of layer %d"):format(range.first) or (" of layers %d to %d"):format(range.first, range.last)
end

-- Which matrices a formula of initial values is for.
local function matrices_of(formula)
  local out, layers = {}, nil
  for _, range in ipairs(formula.of) do
    if layers_of(range) == layers then
      out[#out] = out[#out] .. ", " .. range.role
    else
      if layers then out[#out] = out[#out] .. layers end
      out[#out + 1], layers = range.role, layers_of(range)
    end
  end
  return table.concat(out, "; ") .. (layers or "")
end

local function label_of(key, value, label)
  if type(value) == "table" and value.states and is_expression(value.expression) then return parameters_of(value) end
  if type(value) == "table" and value.of and is_expression(value.expression) then return matrices_of(value) end
  if type(key) == "string" and key ~= "expression" and is_expression(value) then return label and label .. ", " .. key or key end
  return label
end

-- Adds { label, text } of every expression in a value.
local function collect(value, label, found)
  if is_expression(value) then
    found[#found + 1] = { label = label, text = native.expression_text(value) }
  elseif type(value) == "table" then
    for _, key in ipairs(schema.sorted_keys(value)) do collect(value[key], label_of(key, value[key], label), found) end
  end
  return found
end

-- The formulas of a value of a resolved recipe, those that are alike once; "" for a value without any.
function M.text(value)
  local found, labels, order = collect(value, nil, {}), {}, {}
  for _, one in ipairs(found) do
    if not labels[one.text] then
      labels[one.text] = {}
      order[#order + 1] = one.text
    end
    table.insert(labels[one.text], one.label)
  end
  local out = {}
  for _, text in ipairs(order) do
    if #order > 1 then out[#out + 1] = table.concat(labels[text], "; ") .. ":\n" end
    out[#out + 1] = text:gsub("[^\n]+", "  %0")
  end
  return table.concat(out)
end

return M
