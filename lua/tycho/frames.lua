-- Frames of user code on the stack, with their locals.
local M = {}

local kMaxFrames, kMaxLocals = 40, 200

local function locals_of(level, keep)
  local out = {}
  for i = 1, kMaxLocals do
    local name, value = debug.getlocal(level + 1, i)
    if not name then return out end
    if name:sub(1, 1) ~= "(" then out[#out + 1] = keep(name, value) end
  end
  return out
end

-- From a level on, as debug.getinfo counts for this function, innermost first: { file, line, name, locals }. `keep` makes a
-- local's entry of its name and value.
function M.from(level, keep)
  local out = {}
  while #out < kMaxFrames do
    local info = debug.getinfo(level, "Sln")
    if not info then return out end
    local file = info.source:match("^@(.*)$")
    if file and info.currentline > 0 then
      out[#out + 1] = { file = file, line = info.currentline, name = info.name, locals = locals_of(level, keep) }
    end
    level = level + 1
  end
  return out
end

return M
