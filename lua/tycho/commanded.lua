-- Changes that commands made to keys of the recipe during a run, as entries of a key's history.
local native = require "tycho.native"
local schema = require "tycho.schema"

local M = {}

local function is_set(value) return value ~= nil and value ~= native.null end

-- What a command changes about a key, and how; nil if it concerns another one.
local function said(command, path)
  local given = command.arguments
  if command.name == "set_schedule" and path:sub(1, 10) == "scheduler." and is_set(given.scheduler) then
    return schema.literal(given.scheduler[path:sub(11)]), "pin"
  end
  if command.key ~= path then return nil end
  if command.name == "scale_lr" then
    return "x " .. schema.literal(given.factor), is_set(given.for_next) and "for " .. given.for_next or "from then on"
  end
  local _, value = next(given)   -- the only argument, but for set_optimizer
  if command.name == "set_optimizer" then value = given.value end
  if not is_set(value) then return "as before", "released" end
  return schema.literal(type(value) == "table" and value.kind or value), "pin"
end

-- The entries that the commands of a run add to the history of a key: { by, value, at }, oldest first.
function M.entries(run_dir, path)
  local out = {}
  for _, command in ipairs(native.applied_commands(run_dir)) do
    local value, how = said(command, path)
    if value then
      out[#out + 1] = { by = "command", value = value, at = ("%s, step %d (%s)"):format(command.by, command.step, how) }
    end
  end
  return out
end

-- The folder of the run whose record a recipe is: RUN/recipe.lua, or one of a later attempt. "" for another recipe.
function M.run_of(file)
  local folder = file:match "^(.*)/recipe%.lua$" or (file == "recipe.lua" and ".")
  return folder and (folder:match "^(.*)/attempt%-%d+$" or folder) or ""
end

return M
