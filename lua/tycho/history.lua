-- Who set each value, in order: schema default, recipe lines, arguments. `tycho config --why` prints it.
local schema = require "tycho.schema"
local site_of = require "tycho.site"

local M = {}

-- Adds an entry to a path's history. `by`: "default", "recipe" or "argument"; shadowed: a pin hid this write; changed: an
-- argument's operator acted on it.
function M.add(owner, path, by, site, value, shadowed, changed)
  if not owner.history then return end
  owner.writes = (rawget(owner, "writes") or 0) + 1   -- whether it was written since somebody looked
  local list = owner.history[path] or {}
  owner.history[path] = list
  if by == "argument" then
    for _, entry in ipairs(list) do
      if entry.by == "recipe" and not entry.changed then entry.shadowed = true end
    end
  end
  list[#list + 1] = { by = by, at = site_of.text(site, owner.sites), value = schema.literal(value), shadowed = shadowed or nil,
    changed = changed or nil, text = site.text, site = site }
end

-- Where a path's present value comes from; nearest parent when it has no history of its own.
function M.site(owner, path)
  while path ~= "" do
    local list = owner.history[path]
    for i = #(list or {}), 1, -1 do
      if not list[i].shadowed and list[i].by ~= "default" then return list[i].site end
    end
    path = path:match("^(.*)%.[^.]*$") or ""
  end
end

-- The effective entry: the newest that no pin hid.
function M.latest(list)
  for i = #list, 1, -1 do
    if not list[i].shadowed then return list[i] end
  end
end

return M
