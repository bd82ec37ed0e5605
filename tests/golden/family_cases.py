"""The cases of family_models.py: the keys of each tiny model, what is odd about it, and how to turn that off."""
import dataclasses

import torch

VOCAB = 61
FULL, SLIDING = "full_attention", "sliding_attention"


def nothing(_):
    pass


def config(**changes):
    """Turns an option off by other keys of the (text) config."""
    return lambda c: c.update(changes), nothing


def drop_rope_scaling(c):
    for rope in [r for r in c["rope_parameters"].values() if isinstance(r, dict)] or [c["rope_parameters"]]:
        kept = ["rope_theta", "partial_rotary_factor", "llama_4_scaling_beta"]
        kept += ["original_max_position_embeddings"] * ("llama_4_scaling_beta" in rope)  # scales queries too
        for key in set(rope) - set(kept):
            del rope[key]
        rope["rope_type"] = "default"


def rope(kind=None, **changes):
    """Turns an option of the rotary positions off, of one kind of layers if that is named."""
    def change(c):
        (c["rope_parameters"][kind] if kind else c["rope_parameters"]).update(changes)
    return change, nothing


def identity(*names):
    """Turns modules off, for example norms."""
    def change(model):
        for module in list(model.modules()):
            for child in names:
                if hasattr(module, child):
                    setattr(module, child, torch.nn.Identity())
    return nothing, change


def add_to_parameters(ending, amount):
    def change(model):
        for name, parameter in model.named_parameters():
            if name.endswith(ending):
                parameter.data += amount
    return nothing, change


def zero_parameters(ending):
    def change(model):
        for name, parameter in model.named_parameters():
            if name.endswith(ending):
                parameter.data.zero_()
    return nothing, change


def no_embedding_scale(model):
    model.get_input_embeddings().embed_scale.fill_(1.0)


def all_full(layers):
    return config(layer_types=[FULL] * layers)


NO_SCALING = (drop_rope_scaling, nothing)
NO_WINDOW = config(sliding_window=1000)
NO_QK_NORM = identity("q_norm", "k_norm")
EPS = config(rms_norm_eps=1e-6)


@dataclasses.dataclass
class Case:
    model_type: str
    keys: dict
    odd: dict = dataclasses.field(default_factory=dict)
    ignored: dict = dataclasses.field(default_factory=dict)  # changes of keys that the reference ignores
    length: int = 37
    prompts: tuple = (1, 5, 12)
    seed: int = 7
    calmed: float = 0.0  # what the norms after a branch have less than 1
    dtype: str = "bfloat16"
    shard_size: str = "5GB"
    renamed: tuple = ()  # a prefix of the saved names, and what a state dict has in its place
    hub: bool = False  # the hub's layout of config.json
    hub_rope_key: str = "rope_type"
    hub_drop: tuple = ()
    hub_more: dict = dataclasses.field(default_factory=dict)


SHAPE = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=16,
             vocab_size=VOCAB, max_position_embeddings=128, bos_token_id=1, eos_token_id=2, pad_token_id=None)


def keys(theta=10000.0, rope=None, **more):
    """Returns a config: the common shape, rotary positions as given, and more keys."""
    rotary = {"rope_type": "default"} | (rope or {})
    if FULL not in rotary:
        rotary = {"rope_theta": theta} | rotary
    else:
        rotary.pop("rope_type")
    return SHAPE | {"rope_parameters": rotary} | more


def yarn(factor, original, **more):
    return {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": original} | more


def per_kind(full, sliding):
    return {FULL: {"rope_type": "default"} | full, SLIDING: {"rope_type": "default"} | sliding}


QWEN_HUB = {"use_sliding_window": False, "sliding_window": 32, "max_window_layers": 2, "initializer_range": 0.02}
QWEN2_WINDOW = {"use_sliding_window": True, "sliding_window": 5}
GEMMA = dict(head_dim=8, query_pre_attn_scalar=12, sliding_window=5, bos_token_id=2, eos_token_id=1)
GEMMA_ODD = {
    "1 + weight": add_to_parameters("norm.weight", -1.0),
    "norm after attention": identity("post_attention_layernorm"),
    "norm after the feed-forward": identity("post_feedforward_layernorm"),
    "norm before the feed-forward": identity("pre_feedforward_layernorm"),
    "embedding scale": (nothing, no_embedding_scale),
    "tanh-GELU": config(hidden_activation="silu"),
    "exact GELU": config(hidden_activation="gelu"),
    "query_pre_attn_scalar": config(query_pre_attn_scalar=8),
}
OLMO_ODD = {
    "norm after attention": identity("post_attention_layernorm"),
    "norm after the feed-forward": identity("post_feedforward_layernorm"),
    "q and k norm": NO_QK_NORM,
}
PHI = dict(original_max_position_embeddings=128)
SHORT, LONG = [1.0, 1.25, 1.5], [1.0, 2.5, 6.0]


def longrope(short=SHORT, long=LONG, **more):
    return {"rope_type": "longrope", "short_factor": list(short), "long_factor": list(long)} | more


def other_factors(c):
    """Swaps the factors: what is not used must not change anything, and what is used must."""
    r = c["rope_parameters"]
    r["short_factor"], r["long_factor"] = r["long_factor"], r["short_factor"]


MULTIPLIERS = dict(embedding_multiplier=6.0, logits_scaling=4.0, residual_multiplier=0.22, attention_multiplier=0.25)
GRANITE_ODD = {
    "embedding multiplier": config(embedding_multiplier=1.0),
    "logits are divided": config(logits_scaling=1.0),
    "residual multiplier": config(residual_multiplier=1.0),
    "attention multiplier": config(attention_multiplier=6 ** -0.5),
}
GEMMA3_VISION = dict(model_type="siglip_vision_model", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                     num_attention_heads=1, image_size=8, patch_size=4, vision_use_head=False)
MISTRAL3_VISION = dict(model_type="pixtral", hidden_size=8, intermediate_size=8, num_hidden_layers=1,
                       num_attention_heads=1, image_size=8, patch_size=4, head_dim=8)
STATE_NAMES = ("language_model.model.", "model.language_model.")

CASES = {
    # Qwen2 and Qwen2.5
    "qwen2_tied": Case(
        "qwen2", keys(theta=1e6, tie_word_embeddings=True, rms_norm_eps=1e-6),
        odd={"bias of q": zero_parameters("q_proj.bias"), "bias of k": zero_parameters("k_proj.bias"),
             "bias of v": zero_parameters("v_proj.bias")},
        hub=True, hub_drop=("layer_types",), hub_more=QWEN_HUB, dtype="float32"),
    "qwen2_window": Case(
        "qwen2", keys(num_hidden_layers=3, max_window_layers=1, rms_norm_eps=1e-2, **QWEN2_WINDOW),
        odd={"window": all_full(3), "first layer is full": config(layer_types=[SLIDING] * 3),
             "size of the window": config(sliding_window=4), "eps": EPS},
        ignored={"max_window_layers beside layer_types": lambda c: c.update(max_window_layers=0)},
        shard_size="8KB", hub=True, hub_drop=("layer_types",)),
    "qwen2_yarn": Case(
        "qwen2", keys(rope=yarn(4.0, 256), max_position_embeddings=1024, num_attention_heads=2, num_key_value_heads=1),
        odd={"yarn": NO_SCALING, "attention factor": rope(attention_factor=1.0), "beta_fast": rope(beta_fast=4.0),
             "beta_slow": rope(beta_slow=4.0), "truncate": rope(truncate=False)},
        hub=True, hub_rope_key="type", hub_drop=("layer_types",), hub_more=QWEN_HUB),
    # Qwen3
    "qwen3_tied": Case(
        "qwen3", keys(theta=1e6, head_dim=8, tie_word_embeddings=True, attention_bias=False, rms_norm_eps=1e-6),
        odd={"q norm": identity("q_norm"), "k norm": identity("k_norm")},
        hub=True, hub_drop=("layer_types",), hub_more=QWEN_HUB | {"sliding_window": None}),
    "qwen3_window": Case(
        "qwen3", keys(head_dim=8, num_hidden_layers=3, layer_types=[SLIDING, FULL, SLIDING], rms_norm_eps=1e-2,
                      tie_word_embeddings=True, **QWEN2_WINDOW) | {"eos_token_id": [2, 7]},
        odd={"window": all_full(3), "kinds of layers": config(layer_types=[FULL, SLIDING, SLIDING]), "eps": EPS}, seed=8),
    "qwen3_bias_yarn": Case(
        "qwen3", keys(head_dim=16, num_attention_heads=2, num_key_value_heads=1, attention_bias=True,
                      rope=yarn(8.0, 256, attention_factor=1.3, beta_fast=8.0, beta_slow=0.5, truncate=False)),
        odd={"yarn": NO_SCALING, "attention factor": rope(attention_factor=None), "beta_fast": rope(beta_fast=None),
             "beta_slow": rope(beta_slow=None), "truncate": rope(truncate=True),
             "bias": zero_parameters("_proj.bias"), "bias of o": zero_parameters("o_proj.bias")}),
    # Mistral
    "mistral_window": Case(
        "mistral", keys(sliding_window=5, rms_norm_eps=1e-5),
        odd={"window": NO_WINDOW, "size of the window": config(sliding_window=6)},
        ignored={"layer_types": lambda c: c.update(layer_types=[FULL] * 2)},
        hub=True, hub_drop=("head_dim",), hub_more={"initializer_range": 0.02}, dtype="float32"),
    # No key sliding_window: the class has 4096, far beyond these texts.
    "mistral_no_key": Case(
        "mistral", keys(sliding_window=4096, tie_word_embeddings=True), odd={"default window": config(sliding_window=5)},
        hub=True, hub_drop=("sliding_window", "head_dim")),
    "mistral_head_dim": Case(
        "mistral", keys(theta=1e6, head_dim=8, sliding_window=None, rms_norm_eps=1e-2),
        odd={"no window": config(sliding_window=5), "eps": EPS, "theta": rope(rope_theta=1e4)}),
    "mistral_linear": Case(
        "mistral", keys(rope={"rope_type": "linear", "factor": 4.0}, sliding_window=7, tie_word_embeddings=True),
        odd={"linear scaling": NO_SCALING, "window": NO_WINDOW}, hub=True, hub_rope_key="type"),
    "ministral3_scale": Case(
        "ministral3", keys(theta=1e6, head_dim=8, sliding_window=None, rms_norm_eps=1e-5, rope=yarn(
            16.0, 8, beta_fast=32.0, beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.1)),
        odd={"scale of queries": rope(llama_4_scaling_beta=0.0), "yarn": NO_SCALING, "mscale": rope(mscale=0.5)},
        length=70, prompts=(1, 7, 20)),
    "ministral3_tied": Case(
        "ministral3", keys(theta=1e4, head_dim=8, sliding_window=9, tie_word_embeddings=True, rope=yarn(
            4.0, 16, llama_4_scaling_beta=0.7)),
        odd={"scale of queries": rope(llama_4_scaling_beta=0.1), "attention factor": rope(attention_factor=1.0),
             "window": NO_WINDOW}, prompts=(1, 14, 30)),
    "mistral3_wrapper": Case(
        "mistral3", dict(text_config=keys(model_type="mistral", theta=1e6, head_dim=8, sliding_window=None,
                                          rms_norm_eps=1e-5),
                         vision_config=MISTRAL3_VISION, image_token_index=60, tie_word_embeddings=False),
        odd={"theta": rope(rope_theta=1e4)}, hub=True, hub_drop=("tie_word_embeddings",)),
    "mistral3_state_names": Case(
        "mistral3", dict(text_config=keys(model_type="ministral3", head_dim=8, sliding_window=None, rope=yarn(
            16.0, 8, mscale=1.0, mscale_all_dim=1.0, llama_4_scaling_beta=0.3)),
                         vision_config=MISTRAL3_VISION, image_token_index=60, tie_word_embeddings=True),
        odd={"scale of queries": rope(llama_4_scaling_beta=0.0), "yarn": NO_SCALING}, renamed=STATE_NAMES),
    # Gemma 2
    "gemma2": Case(
        "gemma2", keys(attn_logit_softcapping=2.0, final_logit_softcapping=3.0, **GEMMA | {"pad_token_id": 0}),
        odd=GEMMA_ODD | {"soft cap of scores": config(attn_logit_softcapping=None),
                         "soft cap of logits": config(final_logit_softcapping=None), "window": NO_WINDOW,
                         "which layers slide": config(layer_types=[FULL, SLIDING])},
        hub=True, hub_drop=("layer_types", "tie_word_embeddings", "use_bidirectional_attention"),
        hub_more={"hidden_act": "gelu_pytorch_tanh", "cache_implementation": "hybrid"}),
    "gemma2_layer_types": Case(
        "gemma2", keys(attn_logit_softcapping=None, final_logit_softcapping=None, num_hidden_layers=3,
                       layer_types=[FULL, SLIDING, SLIDING], rms_norm_eps=1e-2, **GEMMA),
        odd={"soft cap of scores": config(attn_logit_softcapping=1.0), "window": NO_WINDOW, "eps": EPS,
             "soft cap of logits": config(final_logit_softcapping=3.0),
             "which layers slide": config(layer_types=[SLIDING, FULL, SLIDING])}),
    # Gemma 3
    "gemma3_pattern": Case(
        "gemma3_text", keys(rope=per_kind({"rope_theta": 1e6}, {"rope_theta": 1e4}), num_hidden_layers=6,
                            **GEMMA | {"num_key_value_heads": 1, "num_attention_heads": 2, "intermediate_size": 8}),
        odd=GEMMA_ODD | {"q and k norm": NO_QK_NORM, "window": NO_WINDOW, "kinds of layers": all_full(6),
                         "last full layer": config(layer_types=[SLIDING] * 6)},
        ignored={"soft cap of scores": lambda c: c.update(attn_logit_softcapping=0.5)},
        hub=True, hub_drop=("layer_types", "_sliding_window_pattern", "use_bidirectional_attention",
                            "tie_word_embeddings"),
        hub_more={"sliding_window_pattern": 6, "cache_implementation": "hybrid"}, seed=8, calmed=0.7),
    "gemma3_linear": Case(
        "gemma3_text", keys(rope=per_kind({"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                                          {"rope_theta": 1e4}), num_hidden_layers=3,
                            layer_types=[SLIDING, FULL, SLIDING], rms_norm_eps=1e-2, **GEMMA),
        odd={"linear scaling of full layers": NO_SCALING, "theta of full layers": rope(FULL, rope_theta=1e4),
             "theta of sliding layers": rope(SLIDING, rope_theta=1e6), "eps": EPS, "q and k norm": NO_QK_NORM}),
    "gemma3_pattern_of_two": Case(
        "gemma3_text", keys(rope=per_kind({"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5},
                                          {"rope_theta": 2e4}), num_hidden_layers=3, sliding_window_pattern=2,
                            attn_logit_softcapping=0.5, final_logit_softcapping=3.0, **GEMMA),
        odd={"soft cap of logits": config(final_logit_softcapping=None), "linear scaling of full layers": NO_SCALING,
             "kinds of layers": all_full(3)},
        ignored={"soft cap of scores": lambda c: c.update(attn_logit_softcapping=None)},
        hub=True, hub_drop=("layer_types", "_sliding_window_pattern"), hub_more={"sliding_window_pattern": 2}),
    "gemma3_wrapper": Case(
        "gemma3", dict(text_config=keys(model_type="gemma3_text", rope=per_kind(
            {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6}, {"rope_theta": 1e4}), num_hidden_layers=2,
            **GEMMA | {"query_pre_attn_scalar": 256, "layer_types": [SLIDING, FULL]}),
                       vision_config=GEMMA3_VISION, image_token_index=60, mm_tokens_per_image=4),
        odd={"query_pre_attn_scalar": config(query_pre_attn_scalar=8), "window": NO_WINDOW},
        hub=True, hub_drop=("_sliding_window_pattern", "use_bidirectional_attention", "tie_word_embeddings",
                            "attention_bias", "attention_dropout", "attn_logit_softcapping", "bos_token_id",
                            "final_logit_softcapping", "rms_norm_eps", "query_pre_attn_scalar", "rope_theta",
                            "rope_local_base_freq", "hidden_activation", "use_cache", "initializer_range")),
    "gemma3_state_names": Case(
        "gemma3", dict(text_config=keys(model_type="gemma3_text", rope=per_kind({"rope_theta": 1e6}, {"rope_theta": 1e4}),
                                        num_hidden_layers=2, **GEMMA | {"layer_types": [FULL, SLIDING]}),
                       vision_config=GEMMA3_VISION, image_token_index=60, mm_tokens_per_image=4),
        odd={"window": NO_WINDOW}, renamed=STATE_NAMES),
    # OLMo 2 and OLMo 3
    "olmo2": Case(
        "olmo2", keys(theta=5e5, num_key_value_heads=4, rms_norm_eps=1e-6), odd=OLMO_ODD,
        hub=True, hub_more={"initializer_range": 0.02}),
    "olmo2_grouped": Case(
        "olmo2", keys(theta=5e5, rms_norm_eps=1e-2, tie_word_embeddings=True),
        odd={"q norm": identity("q_norm"), "k norm": identity("k_norm"), "eps": EPS, "theta": rope(rope_theta=1e4)},
        length=70),
    "olmo3_pattern": Case(
        "olmo3", keys(rope=per_kind({"rope_theta": 5e5}, {"rope_theta": 5e5}), num_hidden_layers=4, sliding_window=5,
                      num_attention_heads=2, num_key_value_heads=1, intermediate_size=8),
        odd=OLMO_ODD | {"window": NO_WINDOW, "kinds of layers": all_full(4),
                        "fourth layer is full": config(layer_types=[SLIDING] * 4)},
        hub=True, hub_drop=("layer_types",), seed=9, calmed=0.7),
    "olmo3_yarn_hub": Case(
        "olmo3", keys(rope=per_kind(yarn(8.0, 16, attention_factor=1.2079441541679836, beta_fast=32, beta_slow=1,
                                         rope_theta=1e4), {"rope_theta": 5e5}),
                      num_hidden_layers=2, layer_types=[SLIDING, FULL], sliding_window=5),
        odd={"yarn on full layers": NO_SCALING, "theta of full layers": rope(FULL, rope_theta=5e5),
             "theta of sliding layers": rope(SLIDING, rope_theta=1e4), "attention factor": rope(FULL, attention_factor=1.0)},
        length=70, hub=True),
    "olmo3_yarn": Case(
        "olmo3", keys(rope=per_kind(yarn(4.0, 16, truncate=False, rope_theta=5e5), {"rope_theta": 2e4}), head_dim=8,
                      num_hidden_layers=2, layer_types=[FULL, SLIDING], sliding_window=7, rms_norm_eps=1e-2),
        odd={"yarn on full layers": NO_SCALING, "eps": EPS, "theta of sliding layers": rope(SLIDING, rope_theta=5e5)},
        ignored={"truncate of a kind": lambda c: c["rope_parameters"][FULL].update(truncate=True)}, seed=8, calmed=0.7),
    # SmolLM2 is a Llama; SmolLM3
    "smollm2": Case(
        "llama", keys(theta=1e5, num_attention_heads=3, num_key_value_heads=1, head_dim=8, tie_word_embeddings=True,
                      rms_norm_eps=1e-5, bos_token_id=0, eos_token_id=0),
        ignored={"partial_rotary_factor": lambda c: c["rope_parameters"].update(partial_rotary_factor=0.5)},
        hub=True, hub_drop=("head_dim",), hub_more={"rope_interleaved": False, "is_llama_config": True}),
    "smollm3": Case(
        "smollm3", keys(theta=2e6, num_hidden_layers=4, intermediate_size=8, tie_word_embeddings=True),
        odd={"fourth layer without positions": config(no_rope_layers=[1] * 4, layer_types=[FULL] * 4)},
        hub=True, hub_drop=("no_rope_layers",), hub_more={"max_window_layers": 28, "use_sliding_window": False}),
    "smollm3_layers": Case(
        "smollm3", keys(num_hidden_layers=3, no_rope_layers=[0, 1, 1], use_sliding_window=True, sliding_window=5,
                        tie_word_embeddings=False, mlp_bias=True, rms_norm_eps=1e-2, rope=yarn(4.0, 16)),
        odd={"layer without positions": config(no_rope_layers=[1, 1, 1]), "its window": all_full(3), "eps": EPS,
             "yarn": NO_SCALING, "bias of gate": zero_parameters("gate_proj.bias"), "bias of up": zero_parameters("up_proj.bias"),
             "bias of down": zero_parameters("down_proj.bias")}),
    # The gradient of a bias of k is rounding alone in a layer without positions, so here every layer has them.
    "smollm3_bias": Case(
        "smollm3", keys(theta=2e6, no_rope_layers=[1, 1], attention_bias=True, tie_word_embeddings=True),
        odd={"bias of q": zero_parameters("q_proj.bias"), "bias of k": zero_parameters("k_proj.bias"),
             "bias of v": zero_parameters("v_proj.bias"), "bias of o": zero_parameters("o_proj.bias")}),
    # Phi-3 and Phi-4
    "phi3_window": Case(
        "phi3", keys(sliding_window=5, num_key_value_heads=4, rms_norm_eps=1e-5, **PHI), odd={"window": NO_WINDOW},
        hub=True, hub_more={"attention_bias": False, "embd_pdrop": 0.0, "resid_pdrop": 0.0}),
    "phi3_short": Case(
        "phi3", keys(rope=longrope(), max_position_embeddings=256, original_max_position_embeddings=64,
                     num_key_value_heads=4),
        odd={"longrope": NO_SCALING, "attention factor": rope(attention_factor=1.0),
             "short factors": (other_factors, nothing)},
        ignored={"long factors": lambda c: c["rope_parameters"].update(long_factor=[9.0, 8.0, 7.0])},
        hub=True, hub_rope_key="type"),
    "phi3_long": Case(
        "phi3", keys(rope=longrope(), max_position_embeddings=256, original_max_position_embeddings=32,
                     num_key_value_heads=4, sliding_window=100),
        odd={"longrope": NO_SCALING, "attention factor": rope(attention_factor=1.0),
             "long factors": (other_factors, nothing)},
        ignored={"short factors": lambda c: c["rope_parameters"].update(short_factor=[9.0, 8.0, 7.0])},
        length=70, prompts=(5, 26, 32, 40), hub=True, hub_rope_key="type"),
    "phi3_factors": Case(
        "phi3", keys(rope=longrope(factor=3.0, original_max_position_embeddings=32), max_position_embeddings=256,
                     original_max_position_embeddings=32, rms_norm_eps=1e-2),
        odd={"factor": rope(factor=8.0), "eps": EPS, "long factors": (other_factors, nothing)}, prompts=(5, 21, 33)),
    "phi3_attention_factor": Case(
        "phi3", keys(rope=longrope(attention_factor=1.4), max_position_embeddings=256,
                     original_max_position_embeddings=64),
        odd={"attention factor": rope(attention_factor=None)}),
    "phi4": Case(
        "phi3", keys(theta=250000, sliding_window=None, **PHI),
        odd={"theta": rope(rope_theta=1e4), "no window": config(sliding_window=5)}, hub=True, shard_size="8KB"),
    "phi4_mini": Case(
        "phi3", keys(rope=longrope([1.0, 1.5, 2.0], [1.0, 3.0, 9.0], partial_rotary_factor=0.75),
                     max_position_embeddings=256, original_max_position_embeddings=32,
                     tie_word_embeddings=True) | {"hidden_size": 32},
        odd={"longrope": NO_SCALING, "long factors": (other_factors, nothing)}, prompts=(5, 25, 33),
        hub=True, hub_rope_key="type", hub_more={"full_attn_mod": 1, "interpolate_factor": 1, "lm_head_bias": False}),
    "phi4_partial": Case(
        "phi3", keys(rope={"partial_rotary_factor": 0.5}, head_dim=8, **PHI),
        odd={"partial rotation": rope(partial_rotary_factor=1.0)}),
    # Granite 3
    "granite": Case(
        "granite", keys(**MULTIPLIERS, tie_word_embeddings=True, rms_norm_eps=1e-5), odd=GRANITE_ODD,
        hub=True, hub_more={"initializer_range": 0.02}, dtype="float32"),
    "granite_bias": Case(
        "granite", keys(**MULTIPLIERS | {"embedding_multiplier": 12.0, "logits_scaling": 0.5}, theta=1e7,
                        attention_bias=True, mlp_bias=True, rms_norm_eps=1e-2),
        odd=GRANITE_ODD | {"bias of o": zero_parameters("o_proj.bias"), "bias of down": zero_parameters("down_proj.bias"),
                           "bias of gate": zero_parameters("gate_proj.bias"), "eps": EPS}),
}
