-- GPT-2 1.5B.
local r = require "gpt2-124m":extend "gpt2-1.5b"

r.model.width, r.model.heads, r.model.layers = 1600, 25, 48
r.optimizer.lr = 2e-4

return r
