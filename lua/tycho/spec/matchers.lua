-- expect(x) of specs: what a value must be, and what is said of one that is not.
local schema = require "tycho.schema"

local M = {}

local kMostDifferences = 5

local function shown(x) return schema.brief(x) end

local function is_table(x) return type(x) == "table" end

-- Where two tables differ, as "at optimizer.lr: expected 1, got 2", in the order of their keys.
local function differences(expected, got, path, out)
  local keys = {}
  for key in pairs(expected) do keys[key] = true end
  for key in pairs(got) do keys[key] = true end
  for _, key in ipairs(schema.sorted_keys(keys)) do
    local here = schema.join(path, key)
    if is_table(expected[key]) and is_table(got[key]) then
      differences(expected[key], got[key], here, out)
    elseif expected[key] ~= got[key] then
      out[#out + 1] = ("at %s: expected %s, got %s"):format(here, shown(expected[key]), shown(got[key]))
    end
  end
  return out
end

local function several(list)
  local count = #list
  for i = kMostDifferences + 1, count do list[i] = nil end
  if count > kMostDifferences then list[#list + 1] = ("and %d more differences"):format(count - kMostDifferences) end
  return table.concat(list, "\n")
end

-- Texts of several lines: the first line that differs.
local function text_difference(expected, got)
  local a, b, line = (expected .. "\n"):gmatch "(.-)\n", (got .. "\n"):gmatch "(.-)\n", 0
  repeat
    line = line + 1
    local x, y = a(), b()
    if x ~= y then
      return ("line %d differs\nexpected %s\ngot      %s"):format(line, x and ("%q"):format(x) or "its end", y and ("%q"):format(y) or "its end")
    end
  until not x
  return "they differ"
end

local function difference(expected, got)
  if is_table(expected) and is_table(got) then return several(differences(expected, got, "", {})) end
  local are_long = type(expected) == "string" and type(got) == "string" and (expected .. got):find("\n", 1, true)
  if are_long then return text_difference(expected, got) end
  return ("expected %s, got %s"):format(shown(expected), shown(got))
end

local function check(holds, message)
  if not holds then error({ message = message }, 0) end
end

local function contains(got, part)
  if type(got) == "string" then return type(part) == "string" and got:find(part, 1, true) ~= nil end
  for _, one in ipairs(is_table(got) and got or {}) do
    if one == part or (is_table(one) and is_table(part) and #differences(part, one, "", {}) == 0) then return true end
  end
  return false
end

-- expect(x).to_equal(y), .to_be_near(y, tolerance), .to_contain(part), .to_be_nil(), .to_fail_with(text) for functions.
function M.expect(got)
  return {
    to_equal = function(expected)
      local same = expected == got or (is_table(expected) and is_table(got) and #differences(expected, got, "", {}) == 0)
      check(same, same or difference(expected, got))
    end,
    to_be_near = function(expected, tolerance)
      tolerance = tolerance or 1e-6 * math.max(1, math.abs(expected))
      local is_near = type(got) == "number" and math.abs(got - expected) <= tolerance
      check(is_near, ("expected %s to within %s, got %s"):format(shown(expected), shown(tolerance), shown(got)))
    end,
    to_contain = function(part)
      local what = type(got) == "string" and "text" or "a list"
      check(contains(got, part), ("expected %s with %s, got %s"):format(what, shown(part), type(got) == "string" and "\n" .. got or shown(got)))
    end,
    to_be_nil = function() check(got == nil, "expected nil, got " .. shown(got)) end,
    to_fail_with = function(text)
      local ok, raised = pcall(got)
      check(not ok, ("expected an error with %s, got none"):format(shown(text)))
      local said = is_table(raised) and raised.message or tostring(raised)
      check(said:find(text, 1, true) ~= nil, ("expected an error with %s, got\n%s"):format(shown(text), said))
    end,
  }
end

return M
