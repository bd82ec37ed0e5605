// Reads the checkpoint's own settings for data, so that the loss is comparable with training.
#include "trainer/run/evaluate_checkpoint.h"

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/data/mds/cached_index.h"
#include "trainer/eval/evaluate.h"
#include "trainer/eval/icl_evaluator.h"
#include "trainer/recipe/config_io.h"
#include "trainer/run/trained_model.h"

namespace tycho {
namespace {

/// Returns `data` with the settings of training that the loss depends on; only some kinds have any.
template <class Trained, class Config>
Config with_settings(const Trained& /*trained*/, Config data) {
  return data;
}

/// Conversations are written and learned as in training.
ChatConfig with_settings(ChatConfig trained, const ChatConfig& data) {
  trained.path = data.path;
  return trained;
}

/// Documents are separated as in training. Samples of another length are cut again, unless training dropped
/// their ends.
MdsConfig with_settings(const MdsConfig& trained, MdsConfig data) {
  data.eos_token_id = trained.eos_token_id;
  data.bos_token_id = trained.bos_token_id;
  data.truncate = trained.truncate;
  data.recut = !data.truncate;
  return data;
}

DataConfig read_as(const DataConfig& trained, const DataConfig& data) {
  return std::visit([](const auto& a, const auto& b) { return DataConfig{{with_settings(a, b)}}; },
                    trained.value, data.value);
}

/// Uses the template that the checkpoint keeps, since its file may no longer exist.
void use_kept_template(const TrainedSource& checkpoint, const DataConfig& trained, EvalData& sets) {
  const auto* chat = std::get_if<ChatConfig>(&trained.value);
  if (chat == nullptr || !chat->has_template_file() || !checkpoint.has_file(kChatTemplateFile)) return;
  for (auto& [name, data] : sets)
    if (auto* set = std::get_if<ChatConfig>(&data.value);
        set != nullptr && set->chat_template == chat->chat_template)
      set->chat_template = "tokenizer";
}

/// Returns the path of the checkpoint's tokenizer, verified, after checking that all sets of tokens were made
/// with it; "" for none.
std::string checked_tokenizer(const TrainedSource& checkpoint, const EvalData& sets) {
  const std::string kept = kept_tokenizer(checkpoint);
  if (kept.empty()) return "";
  const std::string place = checkpoint.info().path + "/" + kept;
  const auto tokenizer = open_kept_tokenizer(checkpoint);
  for (const auto& [name, data] : sets) check_made_with(data, tokenizer->hash(), place);
  return place;
}

/// Returns the recipe that is evaluated. An import of a Hugging Face model, which was trained elsewhere,
/// names neither data nor its tokenizer: it gets what it is evaluated on, and the tokenizer that came with
/// it.
Json evaluated_recipe(const TrainedSource& checkpoint, const std::optional<DataConfig>& data) {
  Json recipe = checkpoint.info().manifest.at("recipe");
  TrainConfig config;
  const Json none = config_to_json(config).at("train_data");
  if (canonical_json(recipe.value("train_data", none)) != canonical_json(none)) return recipe;
  if (!data)
    fail(ExitCode::kUsage,
         "[eval] {} has no eval_data, for it was trained elsewhere: name the data with --data DIR",
         checkpoint.info().path);
  config.train_data = *data;
  recipe["train_data"] = config_to_json(config).at("train_data");
  if (const std::string kept = kept_tokenizer(checkpoint); !kept.empty())
    recipe["tokenizer"] = checkpoint.info().path + "/" + kept;
  return recipe;
}

}  // namespace

std::optional<EvalResults> evaluate_checkpoint(const TrainedSource& checkpoint,
                                               const std::optional<DataConfig>& data,
                                               std::optional<int64_t> batches, const at::Device& device,
                                               const std::atomic<int>& stop) {
  const std::string& path = checkpoint.info().path;
  const TrainConfig config =
      read_trained_config(evaluated_recipe(checkpoint, data), TrainedUse::kEvaluation, path);
  EvalData sets = data ? EvalData{{"", read_as(config.train_data, *data)}} : config.eval_data;
  use_kept_template(checkpoint, config.train_data, sets);
  if (sets.empty())
    fail(ExitCode::kUsage, "[eval] the recipe of {} has no eval_data: name the data with --data DIR", path);
  const TokenTexts texts =
      token_texts(checked_tokenizer(checkpoint, sets), config.model.vocab_size(), device);
  const at::ScalarType dtype = compute_dtype(config.precision);
  const BatchShape shape = {micro_batch_sequences(config), config.seq_len};
  LocalUnits units(model_layout(config.model).units, dtype, device, UnitUse::kInfer);
  // There is no backward pass: nothing is kept for it.
  Model model(config.model, units, shape, dtype, device, {.mode = Recompute::kFull}, {}, {},
              token_loss(config));
  const std::unique_ptr<Communicator> world = make_world_of_one();
  const int64_t num_sequences =
      batches.value_or(data ? 0 : config.eval.batches) * global_batch_sequences(config);
  const OpenedData opened;
  std::map<std::string, Evaluator>
      evaluators;  // all made before the first pass, so that an error in any set is reported first
  for (const auto& [name, set] : sets)
    evaluators.try_emplace(name, set, num_sequences, shape, model, *world, *world, *world, device, opened,
                           texts, "eval_data." + name);
  checkpoint.load(config.model, units.owned());
  EvalResults results;
  for (auto& [name, evaluator] : evaluators) {
    const std::optional<EvalResult> result = evaluator.evaluate(stop);
    if (!result) return std::nullopt;
    results[name] = *result;
  }
  return results;
}

std::optional<IclResults> measure_icl(const TrainedSource& checkpoint, const IclConfig& config,
                                      const at::Device& device, const std::atomic<int>& stop) {
  TrainedModel trained(checkpoint, device);
  if (trained.tokenizer() == nullptr)
    fail(ExitCode::kUsage,
         "[icl] {} was trained without a tokenizer, and tasks are text: evaluate a checkpoint of a recipe "
         "with "
         "tokenizer = \"PATH/tokenizer.json\"",
         checkpoint.info().path);
  const IclEvaluator evaluator(config, trained.tokenizer(), trained.vocab_size(),
                               longest_sequence(trained.config()));
  return evaluator.evaluate(trained.asked(), stop);
}

std::optional<std::vector<ContinuationScore>> loglikelihoods(const TrainedSource& checkpoint,
                                                             const std::vector<HarnessRequest>& requests,
                                                             HarnessEncoding encoding,
                                                             const at::Device& device,
                                                             const std::atomic<int>& stop) {
  TrainedModel trained(checkpoint, device);
  const int64_t longest = longest_sequence(trained.config());
  std::vector<Continuation> continuations;
  for (const HarnessRequest& request : requests)
    continuations.push_back(
        encode_request(request, trained.tokenizer().get(), trained.vocab_size(), longest, encoding));
  return score(trained.asked(), continuations, stop);
}

}  // namespace tycho
