// The Lua objects of the model and its parameters.

#include "bindings/run/session_objects.h"
#include "trainer/base/nearest.h"
#include "trainer/base/regex.h"

namespace tycho {
namespace {

/// The parameters [begin, end) of the model: all of them, or those of one layer.
struct Params {
  std::shared_ptr<SessionRef> of;
  int64_t begin = 0, end = 0;
};

Params& params(Call& call) { return call.self<Params>(); }

/// Returns the session of a call, for tensors to keep. The model object and its session end together.
std::shared_ptr<SessionRef> shared(Call& call) { return call.self<SessionRef>().shared_from_this(); }

void push_param(Call& call, const std::shared_ptr<SessionRef>& of, int64_t i) {
  push_tensor(call, of->session->weight(i), of, i);
}

int push_params(Call& call, int64_t begin, int64_t end) {
  return call.push_object(params_class(), std::make_shared<Params>(Params{shared(call), begin, end}));
}

int all_params(Call& call) {
  return push_params(call, 0, static_cast<int64_t>(session(call).params().size()));
}

int layer(Call& call) {
  const int64_t wanted = call.integer(1), num_layers = session(call).facts().num_layers;
  if (wanted < 1 || wanted > num_layers)
    throw ScriptError("E_SHAPE",
                      fmt::format("model:layer({}): this model has layers 1..{}", wanted, num_layers));
  const std::vector<ParamInfo>& all = session(call).params();
  const auto is_there = [&](const ParamInfo& param) { return param.layer == wanted - 1; };
  const auto first = std::find_if(all.begin(), all.end(), is_there);
  const auto last = std::find_if_not(first, all.end(), is_there);
  return push_params(call, first - all.begin(), last - all.begin());
}

std::vector<int64_t> matches(const std::vector<ParamInfo>& all, const std::string& pattern) {
  std::vector<int64_t> found;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].name == pattern) return {static_cast<int64_t>(i)};
  const Regex regex(pattern);
  if (!regex.problem().empty())
    throw ScriptError("E_ARGUMENT", fmt::format("model:find: \"{}\" is not a regular expression: {}", pattern,
                                                regex.problem()));
  for (size_t i = 0; i < all.size(); ++i)
    if (regex.is_found_in(all[i].name)) found.push_back(static_cast<int64_t>(i));
  return found;
}

int find(Call& call) {
  const std::vector<ParamInfo>& all = session(call).params();
  const std::vector<int64_t> found = matches(all, call.text(1));
  if (found.empty()) {
    std::vector<std::string> names;
    for (const ParamInfo& param : all) names.push_back(param.name);
    throw ScriptError("E_NAME",
                      fmt::format("model:find: no parameter matches \"{}\"{}", call.text(1),
                                  did_you_mean(call.text(1), names)),
                      "for name, p in model.params do print(name) end  lists them");
  }
  luaL_checkstack(call.L, static_cast<int>(found.size()) + 4, "model:find");
  for (const int64_t i : found) push_param(call, shared(call), i);
  return static_cast<int>(found.size());
}

TextOptions text_options(const Json& given) {
  TextOptions options;
  options.max_tokens = given.value("max_tokens", options.max_tokens);
  options.temperature = given.value("temperature", options.temperature);
  options.top_k = given.value("top_k", options.top_k);
  options.top_p = given.value("top_p", options.top_p);
  options.repetition_penalty = given.value("repetition_penalty", options.repetition_penalty);
  options.ignore_eos = given.value("ignore_eos", options.ignore_eos);
  options.seed = given.value("seed", options.seed);
  if (const std::string stop = given.value("stop", ""); !stop.empty()) options.stop = {stop};
  return options;
}

int push_ids(Call& call, const std::vector<int32_t>& ids) {
  lua_createtable(call.L, static_cast<int>(ids.size()), 0);
  for (size_t i = 0; i < ids.size(); ++i) {
    lua_pushnumber(call.L, ids[i]);
    lua_rawseti(call.L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

// From text comes text, from ids come ids.
int generate(Call& call) {
  const TextOptions options = text_options(call.has(2) ? call.data(2) : Json::object());
  if (const auto ids = call.tokens(1)) {
    const auto chosen = session(call).generate_tokens(*ids, options);
    return chosen ? push_ids(call, *chosen) : call.push_nil();
  }
  return call.push(session(call).generate(call.text(1), options, [](const std::string&) {}));
}

std::vector<int32_t> token_argument(Call& call) {
  const auto ids = call.tokens(1);
  return ids ? *ids : session(call).encode(call.text(1));
}

int logits(Call& call) {
  const Json options = call.has(2) ? call.data(2) : Json::object();
  push_tensor(call, session(call).logits(token_argument(call), options.value("all", false)), shared(call));
  return 1;
}

int activations(Call& call) {
  auto streams = session(call).activations(token_argument(call));
  lua_createtable(call.L, static_cast<int>(streams.size()), 0);
  for (size_t i = 0; i < streams.size(); ++i) {
    push_tensor(call, std::move(streams[i]), shared(call));
    lua_rawseti(call.L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

int attention(Call& call) {
  push_tensor(call, session(call).attention(token_argument(call), call.integer(2) - 1), shared(call));
  return 1;
}

int model_text(Call& call) {
  const SessionFacts& facts = session(call).facts();
  return call.push(fmt::format("model {}  {} layers  {} parameters  {} FLOP/token",
                               facts.recipe.at("model").at("kind").get<std::string>(), facts.num_layers,
                               facts.run.num_params, facts.run.flops_per_token_full));
}

const ParamInfo& info(Call& call, int64_t i) {
  return params(call).of->session->params()[static_cast<size_t>(i)];
}

/// Returns the position of a name in the list, or -1.
int64_t position(Call& call, const std::string& name) {
  for (int64_t i = params(call).begin; i < params(call).end; ++i)
    if (info(call, i).name == name) return i;
  return -1;
}

int iterate(Call& call) {
  int64_t i = params(call).begin;
  if (lua_type(call.L, 3) == LUA_TSTRING) i = position(call, lua_tostring(call.L, 3)) + 1;
  if (i >= params(call).end) return call.push_nil();
  call.push(info(call, i).name);
  push_param(call, params(call).of, i);
  return 2;
}

int param_at(Call& call) {
  int64_t i = -1;
  if (lua_type(call.L, 2) == LUA_TNUMBER) i = params(call).begin + call.integer(1) - 1;
  if (lua_type(call.L, 2) == LUA_TSTRING) i = position(call, call.text(1));
  if (i < params(call).begin || i >= params(call).end) return call.push_nil();
  push_param(call, params(call).of, i);
  return 1;
}

int params_text(Call& call) {
  std::string text;
  for (int64_t i = params(call).begin; i < params(call).end; ++i) {
    std::string shape;
    for (const int64_t size : info(call, i).shape) shape += (shape.empty() ? "" : "x") + std::to_string(size);
    text += fmt::format("{}{}  [{}]{}", text.empty() ? "" : "\n", info(call, i).name, shape,
                        info(call, i).frozen ? "  frozen" : "");
  }
  return call.push(text);
}

/// Refuses model:freeze, because the trained parameters are decided before the optimizer is made.
int refuse_freeze(Call& call) {
  if (call.text(1) != "freeze") return call.push_nil();
  throw ScriptError("E_NAME", "model:freeze: the recipe decides what a run trains",
                    "write  r.param_groups = { { match = \"embed\", freeze = true } }  and build again");
}

}  // namespace

const Class& model_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "model",
      .doc = "The network in training.",
      .fields = {{"params", "tycho.run.Params", "All parameters: for name, p in model.params do ... end.",
                  all_params},
                 {"n_params", "integer", "Number of elements in all parameters.",
                  [](Call& c) { return c.push(session(c).facts().run.num_params); }},
                 {"n_layers", "integer", "Blocks.",
                  [](Call& c) { return c.push(session(c).facts().num_layers); }},
                 {"flops_per_token", "number", "Forward and backward, attention counted in full.",
                  [](Call& c) { return c.push(session(c).facts().run.flops_per_token_full); }}},
      .methods =
          {{"layer",
            "tycho.run.Params",
            "The parameters of one block.",
            {{"i", Kind::kInteger, "From 1.", false}},
            layer},
           {"find",
            "tycho.run.Tensor",
            "The parameter with this name, or all whose names match.",
            {{"pattern", Kind::kText, "A name, or a regular expression as in param_groups.", false}},
            find},
           {"generate",
            "string|integer[]",
            "Continues a prompt: text from text, or ids from ids, which needs no tokenizer.",
            {{"prompt", Kind::kTokens, "Text, or a list of token ids.", false},
             {"options",
              Kind::kOptions,
              "",
              true,
              -HUGE_VAL,
              HUGE_VAL,
              {{"max_tokens", Kind::kInteger, "Default 128.", true, 1, 1e9},
               {"temperature", Kind::kNumber, "0 always takes the most likely token; default 1.", true, 0,
                1e6},
               {"top_k", Kind::kInteger, "Choose among the k most likely.", true, 0, 1e9},
               {"top_p", Kind::kNumber, "Choose among the most likely whose probabilities sum to p.", true, 0,
                1},
               {"repetition_penalty", Kind::kNumber, "Above 1, tokens already seen become less likely.", true,
                1e-3, 1e3},
               {"stop", Kind::kText, "Stop before this text.", true},
               {"ignore_eos", Kind::kBoolean, "Continue past the model's end of text.", true},
               {"seed", Kind::kInteger, "The same seed generates the same text.", true, 0}}}},
            generate},
           {"logits",
            "tycho.run.Tensor",
            "Logits after the last token, or after every one.",
            {{"tokens", Kind::kTokens, "Text, or a list of token ids.", false},
             {"options",
              Kind::kOptions,
              "",
              true,
              -HUGE_VAL,
              HUGE_VAL,
              {{"all", Kind::kBoolean, "true: after every token, [tokens, vocabulary].", true}}}},
            logits},
           {"activations",
            "tycho.run.Tensor[]",
            "The residual stream before each block, then after the last one: [tokens, width] each.",
            {{"tokens", Kind::kTokens, "Text, or a list of token ids.", false}},
            activations},
           {"attention",
            "tycho.run.Tensor",
            "Attention weights of a layer, [heads, tokens, tokens]: row t holds the share of each token "
            "in what token t attends to.",
            {{"tokens", Kind::kTokens, "Text, or a list of token ids.", false},
             {"layer", Kind::kInteger, "From 1.", false, 1}},
            attention}},
      .text = model_text,
      .index = refuse_freeze};
  return object;
}

const Class& params_class() {
  static const Class object = {
      .name = "params",
      .doc = "Parameters in forward order: call it in a for loop, or index it by name or position.",
      .fields = {},
      .methods = {},
      .text = params_text,
      .index = param_at,
      .iterate = iterate,
      .length = [](Call& c) { return c.push(params(c).end - params(c).begin); },
      .hint = "for name, p in model.params do print(name) end  lists them"};
  return object;
}

}  // namespace tycho
