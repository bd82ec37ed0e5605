-- GPT-2 350M.
local r = require "gpt2-124m":extend "gpt2-350m"

r.model.width, r.model.heads, r.model.layers = 1024, 16, 24
r.optimizer.lr = 3e-4

return r
