-- t.random: streams of numbers that are a function of their name and seed, the same in every process and on every day.
local native = require "tycho.native"
local sandbox = require "tycho.sandbox"

local M = {}

-- What a stream can draw. uniform() is in [0, 1).
local function methods(session, name, seed)
  local count = 0
  local function uniform()
    count = count + 1
    return native.uniform(seed, name, count - 1)
  end
  local function need(what, ...)
    for i = 1, select("#", ...) do
      if type(select(i, ...)) ~= "number" then session:refuse(what, ("%s expects numbers"):format(what)) end
    end
  end
  return {
    uniform = function(_, low, high)
      low, high = low or 0, high or 1
      need("uniform", low, high)
      return low + (high - low) * uniform()
    end,
    log = function(_, low, high)
      need("log", low, high)
      return low * (high / low) ^ uniform()
    end,
    int = function(_, low, high)
      need("int", low, high)
      return low + math.floor((high - low + 1) * uniform())
    end,
    normal = function(_, mean, std)
      mean, std = mean or 0, std or 1
      need("normal", mean, std)
      return mean + std * M.normal(uniform(), uniform())
    end,
    choice = function(_, list)
      if type(list) ~= "table" or #list == 0 then session:refuse("choice", "choice expects a list: rng:choice { 1, 2, 3 }") end
      return list[1 + math.floor(#list * uniform())]
    end,
  }
end

-- A standard normal of two uniform numbers (Box and Muller 1958).
function M.normal(u, v) return math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v) end

function M.stream(session, name, seed)
  if type(name) ~= "string" then session:refuse("random", 't.random expects a name: t.random("widths")') end
  seed = seed or 17
  if type(seed) ~= "number" or seed < 0 or seed % 1 ~= 0 then session:refuse("random", "a seed is a whole number from 0") end
  return sandbox.view(("t.random(%q)"):format(name), methods(session, name, seed),
    function(...) return session:refuse(...) end)
end

return M
