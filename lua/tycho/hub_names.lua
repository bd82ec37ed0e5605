-- Names of the Hugging Face hub in a recipe: a run keeps to the commits that it began with.
local native = require "tycho.native"

local M = {}

-- The name with its commit; a text that does not begin with hf:// as it is. session.commits keeps which commit a
-- revision stands for.
function M.pinned(session, text)
  if type(text) ~= "string" or text:sub(1, 5) ~= "hf://" then return text end
  local name, revision, commit = native.pinned_name(text)
  if revision then session.commits[revision] = commit end
  return name
end

-- Pins every name in a tree, which it returns.
function M.pin_tree(session, value)
  if type(value) ~= "table" then return M.pinned(session, value) end
  for key, one in pairs(value) do value[key] = M.pin_tree(session, one) end
  return value
end

return M
