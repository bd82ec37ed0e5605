-- Llama 3 70B from scratch, with TorchTitan's numbers for it.
local r = require "llama-8b":extend "llama-70b"

r.model = { width = 8192, layers = 80, heads = 64, kv_heads = 8, ffn_width = 28672 }
r.global_batch   = "256sp"
r.recompute.mode = "full"
r.optimizer.lr   = 1.5e-4

return r
