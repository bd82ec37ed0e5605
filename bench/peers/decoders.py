"""The models of the training peer in Python PyTorch, as fast as PyTorch computes them: Llama, and GPT-2 and MPT in one class.
Every one has forward(tokens_BT, targets_BT) -> loss."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class LlamaBlock(nn.Module):
    """RMSNorm, rotary grouped-query attention, RMSNorm, SwiGLU. Projections that share an input are one matrix."""

    def __init__(self, args):
        super().__init__()
        self.heads, self.kv_heads, self.repeat_kv = args.heads, args.kv_heads, args.gqa == "repeat"
        self.head_width = args.width // args.heads
        self.eps = args.norm_eps
        kv_width = self.kv_heads * self.head_width
        self.attention_norm = nn.Parameter(torch.ones(args.width))
        self.ffn_norm = nn.Parameter(torch.ones(args.width))
        # Tensor parallel cuts each projection by itself; otherwise those that share an input are one matrix.
        self.is_split = getattr(args, "split_projections", False)
        outputs = {"qkv": args.width + 2 * kv_width, "gate_up": 2 * args.ffn_width}
        if self.is_split:
            outputs = {"q": args.width, "k": kv_width, "v": kv_width, "gate": args.ffn_width, "up": args.ffn_width}
        for name, width in outputs.items():
            setattr(self, name, nn.Linear(args.width, width, bias=False))
        self.out = nn.Linear(args.width, args.width, bias=False)
        self.down = nn.Linear(args.ffn_width, args.width, bias=False)
        self.attention_input, self.ffn_input = nn.Identity(), nn.Identity()  # where tensor parallel begins

    def queries_keys_values(self, x_BTD):
        B, T, _ = x_BTD.shape
        if self.is_split:
            return (x.view(B, T, -1, self.head_width).transpose(1, 2) for x in (self.q(x_BTD), self.k(x_BTD), self.v(x_BTD)))
        return self.qkv(x_BTD).view(B, T, -1, self.head_width).transpose(1, 2).split(
            [self.heads, self.kv_heads, self.kv_heads], dim=1)

    def attention(self, x_BTD, cos, sin):
        B, T, _ = x_BTD.shape
        q, k, v = self.queries_keys_values(self.attention_input(x_BTD))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if self.repeat_kv and self.heads != self.kv_heads:
            k, v = (x.repeat_interleave(self.heads // self.kv_heads, dim=1) for x in (k, v))
        grouped = k.shape[1] != self.heads
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return self.out(y.transpose(1, 2).reshape(B, T, -1))

    def forward(self, x, cos, sin):
        x = x + self.attention(F.rms_norm(x, x.shape[-1:], self.attention_norm.to(x.dtype), self.eps), cos, sin)
        normed = self.ffn_input(F.rms_norm(x, x.shape[-1:], self.ffn_norm.to(x.dtype), self.eps))
        gate, up = (self.gate(normed), self.up(normed)) if self.is_split else self.gate_up(normed).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


def rotate(x_BHTK, cos, sin):
    half = x_BHTK.shape[-1] // 2
    turned = torch.cat((-x_BHTK[..., half:], x_BHTK[..., :half]), dim=-1)
    return x_BHTK * cos + turned * sin


def initialise(model, layers):
    for name, p in model.named_parameters():
        if p.dim() == 2:
            into_residual = name.endswith(("out.weight", "down.weight"))
            nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if into_residual else 0.02)
        elif name.endswith("bias"):
            nn.init.zeros_(p)


class Llama(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.eps = args.norm_eps
        self.embedding = nn.Embedding(args.vocab, args.width)
        self.blocks = nn.ModuleList(LlamaBlock(args) for _ in range(args.layers))
        self.norm = nn.Parameter(torch.ones(args.width))
        self.head = nn.Linear(args.width, args.vocab, bias=False)
        initialise(self, args.layers)
        if args.tied:
            self.head.weight = self.embedding.weight
        head_width = args.width // args.heads
        frequencies = args.rope_theta ** (-torch.arange(0, head_width, 2, dtype=torch.float64) / head_width)
        angles = torch.outer(torch.arange(args.seq_len, dtype=torch.float64), frequencies).repeat(1, 2)
        self.register_buffer("cos", angles.cos().float(), persistent=False)
        self.register_buffer("sin", angles.sin().float(), persistent=False)

    def forward(self, tokens_BT, targets_BT):
        x = self.embedding(tokens_BT)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return token_loss(self.head(F.rms_norm(x, x.shape[-1:], self.norm.to(x.dtype), self.eps)), targets_BT)


class LlamaStage(nn.Module):
    """Blocks [begin, end) of a Llama: with its embedding if they are the first, with its head if they are the last."""

    def __init__(self, model, begin, end):
        super().__init__()
        self.eps = model.eps
        self.embedding = model.embedding if begin == 0 else None
        self.blocks = model.blocks[begin:end]
        self.has_head = end == len(model.blocks)
        self.norm, self.head = (model.norm, model.head) if self.has_head else (None, None)
        self.register_buffer("cos", model.cos, persistent=False)
        self.register_buffer("sin", model.sin, persistent=False)

    def forward(self, x):
        x = self.embedding(x) if self.embedding is not None else x
        for block in self.blocks:
            x = block(x, self.cos, self.sin)
        return self.head(F.rms_norm(x, x.shape[-1:], self.norm, self.eps)) if self.has_head else x


def token_loss(logits, targets_BT):
    return F.cross_entropy(logits.flatten(0, 1).float(), targets_BT.flatten(), ignore_index=-100)


class GptBlock(nn.Module):
    """LayerNorm, attention, LayerNorm, GELU feed-forward."""

    def __init__(self, args, bias, gelu):
        super().__init__()
        self.heads, self.gelu = args.heads, gelu
        self.attention_norm = nn.LayerNorm(args.width, args.norm_eps, bias=bias)
        self.ffn_norm = nn.LayerNorm(args.width, args.norm_eps, bias=bias)
        self.qkv = nn.Linear(args.width, 3 * args.width, bias=bias)
        self.out = nn.Linear(args.width, args.width, bias=bias)
        self.up = nn.Linear(args.width, args.ffn_width, bias=bias)
        self.down = nn.Linear(args.ffn_width, args.width, bias=bias)

    def forward(self, x, bias_HTT):
        B, T, D = x.shape
        q, k, v = self.qkv(self.attention_norm(x)).view(B, T, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias_HTT, is_causal=bias_HTT is None)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, D))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x)), approximate=self.gelu))


class Gpt(nn.Module):
    """GPT-2: learned positions and biases. MPT: ALiBi, handed to SDPA with the causal mask as a bias, and no biases. Tied."""

    def __init__(self, args):
        super().__init__()
        gpt2 = args.family == "gpt2"
        self.embedding = nn.Embedding(args.vocab, args.width)
        self.positions = nn.Embedding(args.seq_len, args.width) if gpt2 else None
        self.blocks = nn.ModuleList(GptBlock(args, gpt2, "tanh" if gpt2 else "none") for _ in range(args.layers))
        self.norm = nn.LayerNorm(args.width, args.norm_eps, bias=gpt2)
        initialise(self, args.layers)
        self.register_buffer("bias_HTT", None if gpt2 else alibi(args.heads, args.seq_len), persistent=False)

    def forward(self, tokens_BT, targets_BT):
        x = self.embedding(tokens_BT)
        if self.positions is not None:
            x = x + self.positions.weight
        autocast = torch.is_autocast_enabled("cpu")
        bias = self.bias_HTT if self.bias_HTT is None or not autocast else self.bias_HTT.to(torch.bfloat16)
        for block in self.blocks:
            x = block(x, bias)
        return token_loss(F.linear(self.norm(x), self.embedding.weight), targets_BT)


def alibi(heads, seq_len):
    """slope x (key - query), and -infinity for keys that come later (Press et al. 2022, MPT's order of slopes)."""
    power = 2 ** math.ceil(math.log2(heads))
    slopes = [2 ** (-8 * i / power) for i in range(1, power + 1)]
    if power != heads:
        slopes = (slopes[1::2] + slopes[::2])[:heads]
    behind = torch.arange(seq_len)[None, :] - torch.arange(seq_len)[:, None]
    bias = torch.tensor(slopes)[:, None, None] * behind
    return bias.masked_fill(behind > 0, -math.inf)


class TransformersQwen3(nn.Module):
    """transformers' own Qwen3 with its fastest attention on a CPU, SDPA; no cache, logits of all tokens."""

    def __init__(self, args):
        import transformers
        super().__init__()
        config = transformers.Qwen3Config(
            hidden_size=args.width, num_hidden_layers=args.layers, num_attention_heads=args.heads,
            num_key_value_heads=args.kv_heads, head_dim=args.head_width, intermediate_size=args.ffn_width,
            vocab_size=args.vocab, max_position_embeddings=args.seq_len, tie_word_embeddings=args.tied, use_cache=False,
            rope_parameters={"rope_type": "default", "rope_theta": 1e6}, rms_norm_eps=1e-6, attn_implementation="sdpa")
        self.inner = transformers.Qwen3ForCausalLM(config)

    def forward(self, tokens_BT, targets_BT):
        return token_loss(self.inner(tokens_BT).logits, targets_BT)


FAMILIES = {"llama": Llama, "gpt2": Gpt, "mpt": Gpt, "qwen3": TransformersQwen3}
