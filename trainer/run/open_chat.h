// A trained model to talk to, from a checkpoint or a Hugging Face folder.
#pragma once
#include <memory>

#include "trainer/kernels/tensor.h"
#include "trainer/session/chat_session.h"

namespace tycho {

/// Opens the model. Throws Error: kUnusable for a folder that cannot be read, a model without a tokenizer,
/// and a template that is not supported; kUsage for `ema` without an average.
std::unique_ptr<ChatSession> open_chat(const ChatRequest& request, const at::Device& device);

}  // namespace tycho
