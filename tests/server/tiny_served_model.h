// A random model of a few thousand weights behind an engine of its own.
#ifndef SLUICE_TESTS_SERVER_TINY_SERVED_MODEL_H_
#define SLUICE_TESTS_SERVER_TINY_SERVED_MODEL_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/server/served_model.h"
#include "tests/base/temp_folder.h"
#include "tests/model/tiny_model.h"

namespace sluice {

inline constexpr char kTinyChatTemplate[] =
    "{% for t in tools or [] %}{{ t.function.name }};{% endfor %}{% for m in messages %}"
    "{{ m.role }}:{{ m.content }};{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"
    "{# <tool_call> #}";

// `chat_template` empty: a base model.
inline std::shared_ptr<ServedModel> LoadTiny(const std::string& chat_template = kTinyChatTemplate,
                                             const TinyModel& tiny = TinyModel()) {
  TempFolder folder;
  const std::string path = tiny.Write(folder.path("tiny.gguf"));
  ServedModelOptions options;
  options.chat_template = chat_template;
  options.service.runner.threads = 1;
  options.service.runner.context = 128;
  options.service.engine.max_sequences = 4;
  ModelEntry entry;
  entry.name = "tiny";
  entry.path = path;
  entry.bytes = 1000;
  entry.modified_s = 5;
  Result<std::shared_ptr<ServedModel>> model = ServedModel::Load(entry, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? *model : nullptr;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_TINY_SERVED_MODEL_H_
