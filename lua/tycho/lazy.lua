-- t.lazy values: functions of the finished recipe, called once each, in any order that they need of each other.
local native = require "tycho.native"
local node_of = require "tycho.node"
local schema = require "tycho.schema"
local site_of = require "tycho.site"
local write = require "tycho.write"

local M = {}

local function cycle_text(stack, path)
  local out = {}
  for i = 1, #stack do
    if stack[i] == path or #out > 0 then out[#out + 1] = stack[i] end
  end
  out[#out + 1] = path
  return table.concat(out, " -> ")
end

-- Gives node.key the value that its function makes.
function M.resolve(self, node, key)
  local lazy, path = node.lazy[key], node_of.named(node, key)
  self.resolving = self.resolving or {}
  for _, waiting in ipairs(self.resolving) do
    if waiting == path then
      node.state[key] = "invalid"
      self:problem(site_of.problem(lazy.site, "value", ("%s depends on itself: %s"):format(path,
        cycle_text(self.resolving, path))))
      self:stop()
    end
  end
  table.insert(self.resolving, path)
  local ok, value = pcall(lazy.fn, self.root.proxy)
  table.remove(self.resolving)
  if ok then
    node.state[key], node.lazy[key] = nil, nil
    return write.set(node, key, value, lazy.site, "recipe")
  end
  node.state[key] = "invalid"
  if value == self.stop_mark then return end
  if native.exit_of(value) then error(value, 0) end
  self:problem(site_of.problem(lazy.site, "value", ("%s: its function failed: %s"):format(path, self.without_place(value))))
end

-- Every lazy value of a node and below it.
function M.resolve_all(self, node)
  for _, key in ipairs(schema.sorted_keys(node.lazy or {})) do
    if node.state[key] == "lazy" then M.resolve(self, node, key) end
  end
  for _, key in ipairs(node.keys) do
    local value = node.values[key]
    if type(value) == "table" and value.proxy then M.resolve_all(self, value) end
  end
end

return M
