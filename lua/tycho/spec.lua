-- A small test runner: describe, it, expect. `tycho test FILE...` runs spec files with it.
local M = {}

local function same(a, b)
  if type(a) ~= "table" or type(b) ~= "table" then return a == b end
  for key, value in pairs(a) do
    if not same(value, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

local function show(x)
  if type(x) == "string" then return "\n" .. x .. "\n" end
  if type(x) ~= "table" then return tostring(x) end
  local out = {}
  for key, value in pairs(x) do out[#out + 1] = tostring(key) .. " = " .. tostring(show(value)) end
  table.sort(out)
  return "{ " .. table.concat(out, ", ") .. " }"
end

local function check(holds, message, ...)
  if not holds then error(message:format(...), 3) end
end

-- expect(x).to_equal(y), .to_contain(text), .to_be_nil(), .to_fail_with(text) for functions.
function M.expect(got)
  return {
    to_equal = function(wanted) check(same(got, wanted), "wanted %s, got %s", show(wanted), show(got)) end,
    to_contain = function(text)
      check(type(got) == "string" and got:find(text, 1, true), "wanted text with %s, got %s", show(text), show(got))
    end,
    to_be_nil = function() check(got == nil, "wanted nil, got %s", show(got)) end,
    to_fail_with = function(text)
      local ok, message = pcall(got)
      check(not ok, "wanted an error with %s, got none", show(text))
      message = type(message) == "table" and message.message or tostring(message)
      check(message:find(text, 1, true), "wanted an error with %s, got %s", show(text), show(message))
    end,
  }
end

-- Runs spec files; say(text) prints. Returns how many passed and failed.
function M.run(files, read_file, say)
  local passed, failed, names = 0, 0, {}
  local world = setmetatable({
    expect = M.expect,
    describe = function(name, fn)
      names[#names + 1] = name
      fn()
      names[#names] = nil
    end,
    it = function(name, fn)
      local ok, message = xpcall(fn, function(raised)
        return type(raised) == "table" and raised.message or debug.traceback(tostring(raised), 2)
      end)
      if ok then passed = passed + 1 return end
      failed = failed + 1
      say(("FAILED  %s %s\n%s\n"):format(table.concat(names, " "), name, message))
    end,
  }, { __index = _G })
  for _, file in ipairs(files) do
    local text = assert(read_file(file))
    package.path = (file:match("^(.*/)[^/]*$") or "./") .. "?.lua"   -- fixtures lie beside their specs
    local chunk, message = loadstring(text, "@" .. file)
    if chunk then
      setfenv(chunk, world)
      local ok, raised = xpcall(chunk, debug.traceback)
      if not ok then failed = failed + 1 say(("FAILED  %s\n%s\n"):format(file, raised)) end
    else
      failed = failed + 1
      say(("FAILED  %s\n"):format(message))
    end
  end
  return passed, failed
end

-- The door for C++: request.files, each a spec file.
function M.main(request)
  local native = require "tycho.native"
  local passed, failed = M.run(request.files, native.read_file, native.output)
  return { passed = passed, failed = failed }
end

return M
