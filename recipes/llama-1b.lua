-- Llama 3.2 1B from scratch: tied, with the positions of Llama 3.1.
local r = require "llama-8b":extend "llama-1b"

r.model = {
  width = 2048, layers = 16, heads = 32, kv_heads = 8, ffn_width = 8192, tied = true,
  rope_scaling = { type = "llama3", factor = 32 },
}
r.micro_batch = "auto"                                     -- as many as fit; the fastest

return r
