// sluice top: what a server does right now, on a terminal, as text or as JSON.
#include <unistd.h>

#include <chrono>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/top/client.h"
#include "cli/top/controls.h"
#include "cli/top/layout.h"
#include "cli/top/poller.h"
#include "cli/top/screen.h"
#include "cli/top/state.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

using top::Client;
using top::Controls;
using top::Scrape;
using top::TopState;

constexpr size_t kPipeColumns = 120;

struct TopFlags {
  top::ClientOptions client{"http://127.0.0.1:8080", "", false, 5};
  double interval_s = 1;
  bool once = false, json = false, no_color = false;
};

// Two looks, so that there are rates.
Status LookTwice(Client& client, double interval_s, TopState* state) {
  for (int i = 0; i < 2; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(interval_s));
    const Scrape scrape = client.Look();
    if (!scrape.error.empty()) {
      const bool answered = scrape.error.find("answered") != std::string::npos;
      return Status(StatusCode::kIo, answered
                                         ? client.url() + ": " + scrape.error
                                         : "no answer from " + client.url() + ": " + scrape.error +
                                               "; does sluice serve run there?");
    }
    state->Add(scrape);
  }
  return Status();
}

size_t PipeColumns() {
  const char* columns = std::getenv("COLUMNS");
  const long wanted = columns == nullptr ? 0 : std::strtol(columns, nullptr, 10);
  return wanted >= static_cast<long>(top::kLeastWidth) && wanted <= 1000
             ? static_cast<size_t>(wanted)
             : kPipeColumns;
}

Status PrintOnce(const TopFlags& flags, Client& client) {
  TopState state;
  RETURN_IF_ERROR(LookTwice(client, flags.interval_s, &state));
  if (flags.json) {
    boost::json::object object = ViewJson(state.view());
    object["url"] = client.url();
    std::printf("%s\n", ToJson(object).c_str());
    return Status();
  }
  const top::Size size{PipeColumns(), 0, top::LocaleIsUtf8()};
  const auto lines = Layout(client.url(), state, Controls(), size);
  std::fputs(top::PlainText(lines).c_str(), stdout);
  return Status();
}

Status RunScreen(const TopFlags& flags, std::unique_ptr<Client> client) {
  const std::string url = client->url();
  const char* no_color = std::getenv("NO_COLOR");
  const bool colour = !flags.no_color && (no_color == nullptr || *no_color == '\0');
  const InterruptGuard interrupt;
  // Before the screen, which so is given back first: the poller may take a moment to end.
  top::Poller poller(std::move(client), flags.interval_s);
  ASSIGN_OR_RETURN(const std::unique_ptr<top::Screen> screen, top::Screen::Open(colour));
  TopState state;
  Controls controls;
  controls.interval_s = flags.interval_s;
  bool changed = true;
  while (!InterruptGuard::interrupted()) {
    if (const std::optional<Scrape> scrape = poller.Take()) {
      state.Add(*scrape);
      changed = true;
    }
    if (std::optional<std::string> message = poller.TakeMessage()) {
      controls.message = *std::move(message);
      changed = true;
    }
    const top::Size size = screen->size();
    if (changed) screen->Draw(Layout(url, state, controls, size));
    const top::Key key = screen->Read(50);
    changed = key.kind != top::Key::kNone;
    if (!changed) continue;
    const Controls::Outcome outcome =
        controls.Press(key, state.view(), size.width, top::PageRows(state, controls, size));
    if (outcome.action == Controls::Action::kQuit) break;
    if (outcome.action == Controls::Action::kCancel) poller.Cancel(outcome.request_id);
    poller.Set(controls.interval_s, controls.paused);
  }
  return Status();
}

Status Run(const TopFlags& flags) {
  std::setlocale(LC_CTYPE, "");  // numbers stay as they are
  ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Create(flags.client));
  const bool terminal = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1;
  if (flags.once || flags.json || !terminal) return PrintOnce(flags, *client);
  return RunScreen(flags, std::move(client));
}

}  // namespace

void AddTop(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<TopFlags>();
  CLI::App* c = app.add_subcommand(
      "top", "What a server does right now: requests, speeds and the machine's limits");
  c->add_option("URL", flags->client.url,
                "Of the server: http://HOST:PORT, https://..., unix:/PATH; a llama-server or vLLM\n"
                "shows what it has")
      ->capture_default_str();
  c->add_option("--api-key", flags->client.api_key, "The server's key, if it asks for one")
      ->type_name("KEY")
      ->envname("SLUICE_API_KEY");
  c->add_flag("--insecure", flags->client.insecure, "Take any certificate (https)");
  c->add_option("--interval", flags->interval_s, "Seconds between two looks")
      ->capture_default_str()
      ->check(CLI::Range(0.1, 60.0));
  c->add_flag("--once", flags->once, "Print one look as text; so it does on a pipe");
  c->add_flag("--json", flags->json, "Print one look as JSON");
  c->add_flag("--no-color", flags->no_color, "No colours (also NO_COLOR=1)");
  c->footer(
      "Keys: q quit, h help, s or left and right sort, up and down choose, Enter detail, k "
      "cancel, "
      "space pause, + and - change the interval.\n"
      "Example:\n  sluice top http://127.0.0.1:8080 --interval 0.5");
  c->callback([flags, exit_code] {
    std::signal(SIGPIPE, SIG_IGN);
    if (Status s = Run(*flags); !s.ok()) *exit_code = ReportError("top", s);
  });
}

}  // namespace sluice
