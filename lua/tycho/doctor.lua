-- Runs a project's own checks in doctor/*.lua: each file returns a function that reports a finding.
local errors = require "tycho.errors"
local native = require "tycho.native"
local sandbox = require "tycho.sandbox"

local M = {}

local kLevels = { ok = true, warn = true, fail = true }

-- What a check can use.
local machine = {
  env = function(name) return native.env(name) end,
  exists = function(path) return native.exists(path) end,
  read = function(path) return (native.read_file(path)) end,
  free_bytes = function(path) return native.free_bytes(path) end,
  program = function(name) return native.find_program(name) end,
}

local function failed(text) return { level = "fail", text = text, advice = "the check itself is broken" } end

local function run_one(file)
  local text, message = native.read_file(file)
  if not text then return failed(message) end
  if text:sub(1, 1) == "\27" then return failed "this is Lua bytecode; a check is Lua text" end
  local chunk, said = loadstring(text, "@" .. file)
  if not chunk then return failed(said) end
  local function refuse(_, why) error(why, 0) end
  local env = sandbox.environment(native.output, function() error("a check cannot require files", 0) end, refuse)
  local ok, check = pcall(setfenv(chunk, env))
  if ok and type(check) ~= "function" then return failed("it did not return a function: return function(d) ... end") end
  local level, found, advice
  if ok then ok, level, found, advice = pcall(check, machine) else level = check end
  if not ok then return failed(errors.text(level)) end
  if not kLevels[level] or type(found) ~= "string" then
    return failed 'it must return "ok", "warn" or "fail", what it found, and what to do'
  end
  return { level = level, text = found, advice = type(advice) == "string" and advice or nil }
end

-- Entry point for C++. request.files -> findings: { { subject, level, text, advice } }.
function M.run(request)
  local findings = {}
  for i, file in ipairs(request.files) do
    findings[i] = run_one(file)
    findings[i].subject = file:match("([^/]*)%.lua$") or file
  end
  return { findings = native.array(findings) }
end

return M
