-- In-context tasks in a file of their own, which returns a table like r.icl: the door for C++.
local native = require "tycho.native"

local M = {}

-- The keys of the file as those of a recipe, so that each is checked where it stands.
local kProgram = [[
local tasks = require(%q)
if type(tasks) ~= "table" then error(%q .. " returned a " .. type(tasks) .. ", not a table: return { tasks = { ... } }", 0) end
local r = require "tycho".recipe "tasks"
for key, value in pairs(tasks) do r[key] = value end
return r
]]

-- request: file, trace. Returns what session.load does; the tree is that of r.icl.
function M.load(request)
  local name = "tasks of " .. request.file
  request.files = { [name] = kProgram:format(request.file, request.file) }
  request.file = name
  request.schema, request.kind = native.icl_schema(), "file"
  request.check_tree, request.facts = native.check_icl, function() return {} end
  local result = require("tycho.session").load(request)
  result.lua, result.history = nil, nil
  return result
end

return M
