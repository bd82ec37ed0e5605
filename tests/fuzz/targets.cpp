// The targets.
#include "tests/fuzz/targets.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "bindings/define/lua_util.h"
#include "bindings/define/native.h"
#include "bindings/define/recipe.h"
#include "bindings/define/watch.h"
#include "bindings/import/document.h"
#include "bindings/import/import.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/regex.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/checkpoint/safetensors.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/text/split_regex.h"
#include "trainer/data/tokenizer/sentencepiece.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/rendezvous/handshake.h"
#include "trainer/rendezvous/meet/control_messages.h"
#include "trainer/rendezvous/slurm_lists.h"
#include "trainer/sweep/ledger.h"

namespace tycho {
namespace {

template <class Body>
void refused_or_taken(Body&& body) {
  try {
    body();
  } catch (const Error&) {
    // A refusal with a message is what bad bytes should get.
  }
}

void safetensors(std::string_view bytes) {
  refused_or_taken([&] {
    // The first bytes say how long the file is, so that spans can be right.
    const int64_t file_bytes = bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) * int64_t{16};
    parse_safetensors_header(bytes.substr(bytes.empty() ? 0 : 1), file_bytes, "fuzz");
  });
}

void manifest(std::string_view bytes) {
  refused_or_taken([&] { parse_manifest(bytes, "fuzz"); });
  refused_or_taken([&] { manifest_from_json(parse_json(bytes, "fuzz"), "fuzz"); });
}

/// The index of a data set whose shards are not there.
void mds_index(std::string_view bytes) {
  static const std::string dir = [] {
    std::string name = (std::filesystem::temp_directory_path() / "tycho-fuzz-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) fail(ExitCode::kStorage, "no temporary folder");
    return name;
  }();
  const std::string path = dir + "/index.json";
  std::filesystem::remove(path);
  const auto file = real_files().create(path);
  file->write(bytes.data(), bytes.size());
  file->close();
  refused_or_taken([&] { MdsReader reader(read_mds_index(dir)); });
}

void tokenizer(std::string_view bytes) {
  refused_or_taken([&] {
    const auto made = tokenizer_from_text(bytes, "fuzz");
    made->decode(made->encode("The quick brown fox, 12 345 \xC3\xA9\xFF <|endoftext|>"));
  });
}

void tokenizer_model(std::string_view bytes) {
  refused_or_taken([&] {
    const TokenizerParts parts = parse_sentencepiece(bytes, "fuzz");
    const BpeTokenizer made(parts);
    made.decode(made.encode("The quick brown fox, 12 345 \xC3\xA9\xFF <s> \xE2\x96\x81"));
  });
}

/// A pattern, a zero byte, a text.
void split_regex(std::string_view bytes) {
  refused_or_taken([&] {
    const size_t end = bytes.find('\0');
    const SplitRegex regex(bytes.substr(0, end));
    const std::string_view text = end == std::string_view::npos ? "aab 12\n" : bytes.substr(end + 1);
    SplitRegex::Effort effort;
    for (size_t from = 0; from <= text.size(); ++from)
      if (const auto match = regex.find(text, from, effort)) from = match->end;
  });
}

void import_yaml(std::string_view bytes) {
  refused_or_taken([&] { import_recipe("fuzz.yaml", std::string(bytes)); });
}

void import_toml(std::string_view bytes) {
  refused_or_taken([&] { import_recipe("fuzz.toml", std::string(bytes)); });
}

constexpr const char* kRecipe =
    "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\nr.max_duration = \"10ba\"\n"
    "r.model = t.model.llama { width = 64, heads = 4, layers = 2, ffn_width = 128 }\n"
    "r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.train_data = t.data.mds { local_dir = \"data\" }\nreturn "
    "r\n";

/// A Lua state for many inputs: making one takes far longer than running most of them.
struct ReusedState {
  std::shared_ptr<LuaState> state;
  int left = 0;  // inputs until it is made anew

  template <class Make>
  const std::shared_ptr<LuaState>& get(const Make& make) {
    if (left-- == 0) {
      left = 1000;
      state = make();
    }
    return state;
  }
};

const std::shared_ptr<LuaState>& recipe_state() {
  static ReusedState reused;
  return reused.get([] { return std::make_shared<LuaState>(); });
}

/// One argument on a recipe that is right; @ would read files.
void overrides(std::string_view bytes) {
  if (bytes.starts_with('@')) return;
  refused_or_taken([&] {
    RecipeRequest request{.file = "x.lua",
                          .pins = {{1, std::string(bytes)}},
                          .files = {{"x.lua", kRecipe}},
                          .only_files = true,
                          .quiet = true};
    try_recipe(request, recipe_state());
  });
}

/// A recipe's own text: the lexer looks at it for every message.
void recipe(std::string_view bytes) {
  refused_or_taken([&] {
    RecipeRequest request{
        .file = "x.lua", .files = {{"x.lua", std::string(bytes)}}, .only_files = true, .quiet = true};
    try_recipe(request, recipe_state());
  });
}

/// Calls the function that `code` returns with the bytes, in a state with the library.
void call_with(ReusedState& reused, const char* code, std::string_view bytes, const LuaLimits& limits) {
  lua_State* L = reused
                     .get([&] {
                       auto made = std::make_shared<LuaState>(limits.max_bytes);
                       open_library(made->get());
                       luaL_loadstring(made->get(), code);
                       call_lua(made->get(), 0, 1);
                       return made;
                     })
                     ->get();
  const LuaWatch watch(L, limits);
  lua_settop(L, 1);
  lua_pushvalue(L, 1);
  lua_pushlstring(L, bytes.data(), bytes.size());
  refused_or_taken([&] { call_lua(L, 1, 0); });
}

/// Any Lua in the world of recipes, without the checks of a recipe.
void sandbox(std::string_view bytes) {
  static ReusedState reused;
  call_with(reused,
            "local sandbox = require 'tycho.sandbox'\n"
            "local function refuse(_, message) error(message, 0) end\n"
            "return function(text)\n"
            "  local fn = load(text, '@fuzz.lua', 't')\n"
            "  return fn and setfenv(fn, sandbox.environment(type, type, refuse))()\nend",
            bytes, {.max_instructions = 20'000, .max_bytes = 16 << 20});
}

void lexer(std::string_view bytes) {
  static ReusedState reused;
  call_with(reused, "return require('tycho.lexer').index", bytes, {.max_bytes = 256 << 20});
}

void toml(std::string_view bytes) {
  refused_or_taken([&] { read_toml(std::string(bytes), "fuzz"); });
}

/// A pattern, and from the second line on the text that it is looked for in.
void regex(std::string_view bytes) {
  const size_t end = std::min(bytes.find('\n'), bytes.size());
  const Regex pattern{std::string(bytes.substr(0, end))};
  const std::string text(bytes.substr(end));
  pattern.is_found_in(text);
  pattern.matches_all_of(text);
  pattern.replaced_in(text, "<\\1>");
}

void ledger(std::string_view bytes) {
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const Json fact = read_ledger_line(bytes.substr(begin, end - begin));
    if (!fact.is_null()) ledger_line(fact);
    begin = end + 1;
  }
}

void slurm_lists(std::string_view bytes) {
  refused_or_taken([&] { expand_slurm_hosts(bytes); });
  refused_or_taken([&] { expand_slurm_counts(bytes); });
}

/// Hands every frame to `take`, in the pieces in which a socket gives them.
template <class Take>
void each_frame(std::string_view bytes, size_t max_frame, Take&& take) {
  FrameReader reader(max_frame);
  while (!bytes.empty()) {
    const size_t n = std::min(reader.wanted(), bytes.size());
    if (const auto frame = reader.add(bytes.substr(0, n))) take(*frame);
    bytes.remove_prefix(n);
  }
}

/// Bytes from the network, as a listener, a client and a rank that has been let in get them.
void rank_messages(std::string_view bytes) {
  constexpr const char* kToken = "0123456789abcdef";
  refused_or_taken([&] {
    HandshakeServer server(kToken);
    each_frame(bytes, kMaxStrangerFrame, [&](const Frame& frame) { server.take(frame); });
  });
  refused_or_taken([&] {
    HandshakeClient client(kToken, {.purpose = "join"});
    each_frame(bytes, kMaxStrangerFrame, [&](const Frame& frame) {
      refused_or_taken([&] { client.verdict(frame); });
      client.claim(frame);
    });
  });
  refused_or_taken([&] {
    each_frame(bytes, kMaxFrame, [](const Frame& frame) {
      refused_or_taken([&] { read_claim(frame.body); });
      refused_or_taken([&] { read_member(frame.body); });
      refused_or_taken([&] { bytes_of(read_cause(frame.body)); });
      refused_or_taken([&] { bytes_of(read_suspicion(frame.body)); });
      refused_or_taken([&] { progress_text(read_report(frame.body)); });
      refused_or_taken([&] { read_mark_question(frame.body); });
      refused_or_taken([&] { read_mark_answer(frame.body); });
      refused_or_taken([&] { read_text(frame.body); });
    });
  });
}

}  // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets = {{"safetensors", safetensors},
                                                  {"manifest", manifest},
                                                  {"mds_index", mds_index},
                                                  {"tokenizer", tokenizer},
                                                  {"tokenizer_model", tokenizer_model},
                                                  {"split_regex", split_regex},
                                                  {"import_yaml", import_yaml},
                                                  {"import_toml", import_toml},
                                                  {"overrides", overrides},
                                                  {"recipe", recipe},
                                                  {"sandbox", sandbox},
                                                  {"lexer", lexer},
                                                  {"toml", toml},
                                                  {"regex", regex},
                                                  {"ledger", ledger},
                                                  {"slurm_lists", slurm_lists},
                                                  {"rank_messages", rank_messages}};
  return targets;
}

}  // namespace tycho
