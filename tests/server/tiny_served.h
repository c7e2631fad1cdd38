// A tiny model, loaded and ready to serve, whose answers are noise.
#ifndef SLUICE_TESTS_SERVER_TINY_SERVED_H_
#define SLUICE_TESTS_SERVER_TINY_SERVED_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/server/served_model.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {

// Roles in brackets, tools and thoughts in the marks of Qwen.
inline constexpr char kTinyTemplate[] =
    "{% if tools %}<tool_call>{{ tools | tojson }}</tool_call>{% endif %}"
    "{% for m in messages %}[{{ m.role }}]{% if m.reasoning_content %}<think>"
    "{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>"
    "{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
    "{% if enable_thinking is defined and not enable_thinking %}<think></think>{% endif %}";

class TinyServed {
 public:
  // An empty template: a base model.
  explicit TinyServed(const std::string& chat_template, size_t context = 128,
                      const std::string& name = "tiny")
      : chat_template_(chat_template), context_(context) {
    TinyModel tiny;
    if (!chat_template.empty()) tiny.SetString("tokenizer.chat_template", chat_template);
    entry_.name = name;
    entry_.path = tiny.Write(folder_.path(name + ".gguf"));
    entry_.bytes = std::filesystem::file_size(entry_.path);
    Result<std::shared_ptr<ServedModel>> model = ServedModel::Load(entry_, options());
    EXPECT_TRUE(model.ok()) << model.status().message();
    if (model.ok()) model_ = *std::move(model);
  }

  ServedModelOptions options() const {
    ServedModelOptions options;
    options.service.runner = TestOptions(context_);
    return options;
  }
  const std::string folder() const { return folder_.path(); }
  const ModelEntry& entry() const { return entry_; }
  const std::shared_ptr<ServedModel>& model() const { return model_; }
  std::string Text(const std::vector<int32_t>& ids) const {
    return model_->tokenizer().Decode(ids, false);
  }

 private:
  TempFolder folder_;
  const std::string chat_template_;
  const size_t context_;
  ModelEntry entry_;
  std::shared_ptr<ServedModel> model_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_TINY_SERVED_H_
