-- Runs operators' entries in a live run: from `tycho attach`, `tycho ctl`, and files in ctl/; and those of t.debug().
local eval = require "tycho.repl.eval"
local native = require "tycho.native"
local schema = require "tycho.schema"
local show = require "tycho.repl.show"

local M = {}

local kFile, kDebugFile = "ctl", "debug"   -- what places in errors call the entry
local kShared = { "cmd", "model", "opt", "sched", "data", "ckpt", "log", "mem", "profile" }   -- of ctx, as names of their own

local names = {}   -- what entries have declared: it stays for the next ones

local function raise(message, hint) error({ message = message .. (hint and "; " .. hint or "") }, 0) end

local function shared(ctx, name, is_read_only)
  local ok, value = pcall(function() return ctx[name] end)
  if ok then return value end
  if name == "cmd" and is_read_only then raise("cmd changes the run, but this prompt is read-only", "tycho attach RUN --control") end
  error(value, 0)
end

-- A name that neither the entry, nor the function around it, nor ctx, nor the recipe's sandbox defines.
local function of_world(session, name, here)
  local known = schema.sorted_keys(names)
  for one in pairs(here or {}) do known[#known + 1] = one end
  for _, one in ipairs(kShared) do known[#known + 1] = one end
  for _, one in ipairs { "ctx", "r", "t", "plot", "hist" } do known[#known + 1] = one end
  local near = schema.did_you_mean(name, known)
  if near and debug.getmetatable(session.env).__names[name] == nil then
    raise("undeclared name  " .. name, ("did you mean  %s?"):format(near))
  end
  return session.env[name]   -- which says why when it has none
end

-- The names that an entry sees; what it prints goes to `print`. here: those of the function that the entry is typed in, or nil.
local function variables(made, ctx, print, here)
  local session, is_shared = made.session, {}
  for _, name in ipairs(kShared) do is_shared[name] = true end
  local function metrics_path() return ctx.run_dir .. "/metrics.jsonl" end
  local function shown(drawing) print((drawing:gsub("\n$", ""))) end
  -- Read when it is needed: what draws is there where a run is open.
  local function draw() return require "tycho.repl.draw" end
  local given = { ctx = ctx, r = made.root.proxy, t = session.t, print = print,
    plot = function(...) shown(draw().plot(metrics_path, ...)) end,
    hist = function(...) shown(draw().histogram(...)) end }
  return setmetatable({}, {
    __metatable = "entry",
    __newindex = function(_, name, value) names[name] = value end,
    __index = function(_, name)
      if names[name] ~= nil then return names[name] end
      if here and here[name] ~= nil then return here[name] end
      if given[name] ~= nil then return given[name] end
      if is_shared[name] then return shared(ctx, name, not here) end
      return of_world(session, name, here)
    end,
  })
end

local function pack(...) return { n = select("#", ...), ... } end

-- Runs an entry in the world of the recipe, with ctx and what ctx holds as names. What it printed and its values, as text;
-- raises { message } with what it printed before that. `on_error` makes the message of what was raised. here: as for variables.
function M.evaluate(made, code, ctx, on_error, here)
  local out, session, file = {}, made.session, here and kDebugFile or kFile
  local function print(...)
    local parts = {}
    for i = 1, select("#", ...) do parts[i] = session.env.tostring((select(i, ...))) end
    out[#out + 1] = table.concat(parts, "\t")
  end
  local fn, message = eval.compile(code, 1, variables(made, ctx, print, here), file)
  if not fn then error({ message = message }, 0) end
  local before = session.sites.forced
  session.sites.forced = { file = file, line = 1 }   -- an entry stands in no file of the recipe
  local results = pack(xpcall(fn, on_error))
  session.sites.forced = before
  if not results[1] then
    out[#out + 1] = results[2].message
    error(native.with_exit({ message = table.concat(out, "\n") }, native.exit_of(results[2])), 0)
  end
  local values = {}
  for i = 2, results.n do values[#values + 1] = show.value(results[i]) end
  if #values > 0 then out[#out + 1] = table.concat(values, "\t") end
  return table.concat(out, "\n")
end

return M
