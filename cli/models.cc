// sluice models: what is in the model folder.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <vector>

#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "src/base/printable.h"
#include "src/file/gguf.h"
#include "src/file/summary.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

struct Row {
  ModelFile file;
  std::string architecture, quantisation;
  std::string error;  // why it cannot be opened
};

std::vector<Row> ReadRows() {
  std::vector<Row> rows;
  for (const ModelFile& file : ListModels()) {
    Row row{file, "", "", ""};
    const auto gguf = Gguf::Open(file.path);
    if (gguf.ok()) {
      row.architecture = Printable(ArchitectureOf(**gguf));
      row.quantisation = QuantisationOf(**gguf);
    } else {
      row.error = gguf.status().message();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

void PrintJson(const std::vector<Row>& rows) {
  boost::json::array list;
  for (const Row& row : rows) {
    boost::json::object o{{"name", Printable(row.file.name, 255)},
                          {"path", Printable(row.file.path, 4096)},
                          {"bytes", row.file.bytes},
                          {"architecture", row.architecture},
                          {"quantisation", row.quantisation}};
    if (!row.error.empty()) o["error"] = row.error;
    list.push_back(std::move(o));
  }
  std::printf("%s\n", ToJson(list).c_str());
}

void PrintTable(const std::vector<Row>& rows) {
  if (rows.empty()) {
    std::printf("no models in %s; `sluice pull` fetches one\n", ModelFolder().c_str());
    return;
  }
  int width = 4;
  for (const Row& row : rows) width = std::max(width, static_cast<int>(row.file.name.size()));
  std::printf("%-*s  %10s  %-12s  %s\n", width, "name", "size", "architecture", "quantisation");
  for (const Row& row : rows) {
    std::printf("%-*s  %10s  ", width, Printable(row.file.name, 255).c_str(),
                HumanBytes(row.file.bytes).c_str());
    if (row.error.empty()) {
      std::printf("%-12s  %s\n", row.architecture.c_str(), row.quantisation.c_str());
    } else {
      std::printf("%s\n", row.error.c_str());
    }
  }
}

}  // namespace

void AddModels(CLI::App& app, int*) {
  auto json = std::make_shared<bool>(false);
  CLI::App* c = app.add_subcommand("models", "List the models in the model folder");
  c->add_flag("--json", *json, "One JSON list");
  c->footer(
      "The model folder is $SLUICE_MODELS, by default ~/.local/share/sluice/models.\n"
      "Example:\n  sluice models --json");
  c->callback([json] {
    const std::vector<Row> rows = ReadRows();
    *json ? PrintJson(rows) : PrintTable(rows);
  });
}

}  // namespace sluice
