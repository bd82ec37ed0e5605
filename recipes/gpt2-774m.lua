-- GPT-2 774M.
local r = require "gpt2-124m":extend "gpt2-774m"

r.model.width, r.model.heads, r.model.layers = 1280, 20, 36
r.optimizer.lr = 2.5e-4

return r
