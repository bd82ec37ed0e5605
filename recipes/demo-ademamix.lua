-- The demo with AdEMAMix, an optimizer that is written in Lua.
local base = require "demo"
local ademamix = require "optim.ademamix"

local r = base:extend "demo-ademamix"
r.optimizer = ademamix { lr = 1e-3, betas = { 0.9, 0.95, 0.99 }, alpha = 4, weight_decay = 0.1 }
return r
