-- The demo with a loss written in Lua: label smoothing, from recipes/loss/smoothed.lua.
local r = require "demo" :extend "demo-smoothed"
local smoothed = require "loss.smoothed"

r.loss = smoothed { epsilon = 0.1 }   -- loss.epsilon=0.05 on the command line, loss.epsilon=0,0.1 in a sweep

return r
