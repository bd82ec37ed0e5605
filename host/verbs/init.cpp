// tycho init: a folder to work in, with a first recipe.
#include <filesystem>

#include "bindings/define/recipe.h"
#include "bindings/run/session_objects.h"
#include "host/signals.h"
#include "host/verb.h"
#include "trainer/base/folder_draft.h"

namespace tycho {

const VerbSpec kInitSpec = {"init DIR",
                            "Creates a project folder with a first recipe, editor settings and stubs, and a "
                            "README with the next steps.",
                            "  tycho init my-model",
                            {kJsonOption}};

namespace {

namespace fs = std::filesystem;

const char* const kFirstRecipe =
    R"lua(-- A small Llama: change what you like, then `tycho check recipes/first.lua`.
local t = require "tycho"
local r = t.recipe "first"

r.seq_len      = 256
r.global_batch = "16sp"     -- sequences per optimizer step
r.max_duration = "500ba"    -- optimizer steps

r.model = t.model.llama {
  width = 256, layers = 4, heads = 4, ffn_width = 768,
  vocab_size = 4096, tied = true,
}
r.optimizer = t.optim.adamw { lr = 2e-3, weight_decay = 0.1 }
r.scheduler = t.sched.cosine { t_warmup = "0.05dur", alpha_f = 0.1 }

r.tokenizer  = "data/tokenizer.json"
r.train_data = t.data.mds { local_dir = "data" }

return r
)lua";

const char* const kReadme = R"md(# A project of Tycho

With data and a tokenizer of the Hugging Face hub, one line trains:

```sh
tycho run recipes/first.lua 'train_data=text{path=hf://datasets/Salesforce/wikitext/wikitext-2-raw-v1}' tokenizer=hf://openai-community/gpt2 model.vocab_size=50304
```

With your own texts, put their files into `texts/`, then:

```sh
tycho tokenizer train texts --vocab-size 4096 --out data/tokenizer.json
tycho data convert texts --tokenizer data/tokenizer.json --out data --concat-tokens 256 --eos-text '<|endoftext|>'
tycho check recipes/first.lua
tycho plan recipes/first.lua
tycho run recipes/first.lua
tycho generate runs/first --prompt 'Once upon a time'
```

`recipes/` holds what is trained, `runs/` what came of it. Any key can be changed on the command line:

```sh
tycho run recipes/first.lua optimizer.lr=1e-3 run_name=slower
tycho diff runs/first runs/slower
tycho sweep recipes/first.lua 'optimizer.lr=log(5e-4,5e-3)' max_duration=50ba metric.name=loss -n 6 --name lr
```

`tycho config recipes/first.lua` lists every key. After an update of Tycho, `tycho types .` writes new stubs for your editor.
)md";

/// Returns the files of a new project: path inside the project -> text.
std::map<std::string, std::string> project_files() {
  const InterruptLua interruptible;
  std::map<std::string, std::string> files = make_stubs(describe(session_classes()));
  files["recipes/first.lua"] = kFirstRecipe;
  files["README.md"] = kReadme;
  files[".gitignore"] = "data/\nruns/\n";
  return files;
}

void refuse_full_folder(const fs::path& folder) {
  if (is_free_for_draft(folder.string())) return;
  if (!fs::is_directory(folder)) fail(ExitCode::kUsage, "[tycho init] {} is a file", folder.string());
  fail(ExitCode::kUsage,
       "[tycho init] {} is not empty, and nothing is overwritten: choose a new folder; for the stubs alone, "
       "tycho types {}",
       folder.string(), folder.string());
}

}  // namespace

int run_init(const Arguments& arguments) {
  const fs::path folder = word(arguments, 0, "the folder to create");
  no_more_words(arguments, 1);
  refuse_full_folder(folder);
  Json written = Json::array();
  FolderDraft draft(real_files(), folder.string());
  for (const auto& [name, text] : project_files()) {
    const fs::path path = draft.dir() / fs::path(name);
    make_dirs(real_files(), path.parent_path().string());
    write_file_atomically(real_files(), path.string(), text);
    written.push_back((folder / name).string());
  }
  draft.publish();
  if (arguments.has("json")) {
    fmt::print("{}\n", Json{{"written", written}}.dump(2));
    return 0;
  }
  for (const Json& path : written) fmt::print("wrote {}\n", path.get<std::string>());
  fmt::print("next: cd {}; README.md has the next steps\n", folder.string());
  return 0;
}

}  // namespace tycho
