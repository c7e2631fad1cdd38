// The machine beside the chat: asks /metrics and /slots every second while somebody
// looks, and shows the limit and how near this server is to it. Each part copes
// without the metrics that it would like.
import {ApiError, call} from './api.js';
import {bars, roofline, stack} from './charts.js';
import {h, setText} from './dom.js';
import {Reading, Window, growth, histogram, quantile} from './metrics.js';
import {bytes, count, digits, percent, rate, seconds} from './units.js';

const TRAIL = 40;  // passes behind the last one

// Causes of lost time, in the order of the bar. The colour goes with the cause.
const CAUSES = {
  weight_stream: ['reading weights', 'c0'], kv_stream: ['reading keys and values', 'c1'],
  compute: ['computing', 'c2'], barrier: ['waiting for each other', 'c3'],
  page_faults: ['page faults', 'c4'], throttled: ['quota used up', 'c5'],
  preempted: ['others on the cores', 'c6'], clock: ['lower clock', 'c7'],
  sampling: ['sampling', 'c8'], queue: ['queue', 'c9'], other: ['other', 'c10'],
};

function section(title, open = true) {
  const note = h('span', {class: 'soft'});
  const body = h('div', {class: 'part'});
  const root = h('details', {class: 'panel', open},
      h('summary', {}, h('h3', {}, title), note), body);
  return {root, body, note: (text) => setText(note, text), show: (...all) => body.replaceChildren(...all),
          hide: (hidden) => { root.hidden = hidden; }};
}

function figures(pairs) {
  return h('dl', {class: 'figures'}, ...pairs.map(([name, value, title]) =>
    h('div', {title}, h('dt', {}, name), h('dd', {}, value))));
}

function legend(parts) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  return h('ul', {class: 'legend'}, ...parts.filter((part) => part.value > 0).map((part) =>
    h('li', {}, h('span', {class: `swatch ${part.kind}`}), `${part.name} `,
        h('b', {}, part.shown ?? percent(part.value / total)))));
}

// Null where there is no such thing.
async function textOf(path, signal) {
  try {
    return await (await call(path, {signal})).text();
  } catch (error) {
    if (error instanceof ApiError && [403, 404, 405, 501].includes(error.status)) return null;
    throw error;
  }
}

export class Machine {
  #window = new Window();
  #passes = [];
  #best = 0;
  #parts;

  constructor(root) {
    this.#parts = {
      now: section('Now'), roof: section('Roofline'), time: section('Where the time goes'),
      first: section('Time to first token'), gap: section('Between tokens'),
      memory: section('Keys and values'), slots: section('Slots'),
    };
    root.append(h('h2', {}, 'Machine'), ...Object.values(this.#parts).map((part) => part.root));
  }

  // One look; throws what api.js throws.
  async look(model, signal) {
    const reading = new Reading(await textOf('metrics', signal) ?? '', performance.now() / 1e3);
    reading.look(model);
    const query = reading.models().includes(model) ? `?model=${encodeURIComponent(model)}` : '';
    const slots = JSON.parse(await textOf(`slots${query}`, signal) ?? '[]');
    this.#window.add(reading);
    this.#show(reading, Array.isArray(slots) ? slots : []);
  }

  // The share of the read ceiling that a sequence's decode speed stands for, at least: its weights
  // alone. Undefined: not known.
  static share(reading, tokensPerSecond) {
    const weights = reading?.value('sluice:weight_bytes_per_token');
    const most = reading?.value('sluice:read_bandwidth_bytes_per_second');
    return weights && most ? tokensPerSecond * weights / most : undefined;
  }

  #show(now, slots) {
    this.reading = now;
    const lately = this.#window.before(3), minutes = this.#window.before(300);
    this.#showNow(now, lately);
    this.#showRoof(now, lately);
    this.#showTime(now, this.#window.before(60));
    this.#showSpread(this.#parts.first, now, minutes, 'vllm:time_to_first_token_seconds');
    const fine = now.buckets('sluice:inter_token_latency_seconds').length > 0;
    this.#showSpread(this.#parts.gap, now, minutes,
        fine ? 'sluice:inter_token_latency_seconds' : 'vllm:inter_token_latency_seconds');
    this.#showMemory(now);
    this.#showSlots(now, slots);
  }

  #showNow(now, then) {
    const wall = then ? now.time - then.time : 0;
    const per = (name) => {
      const grown = wall > 0 ? growth(now, then, name) : undefined;
      return grown > 0 ? rate(grown / wall) : '–';
    };
    const ratio = now.value('sluice:bandwidth_ceiling_ratio') || this.#decodeShare(now, then);
    const running = now.value('vllm:num_requests_running') ?? 0;
    const waiting = now.value('vllm:num_requests_waiting') ?? 0;
    this.#parts.now.note(running + waiting === 0 ? 'idle' :
      `${running} running${waiting ? `, ${waiting} waiting` : ''}`);
    const busy = running > 0 && ratio > 0;
    this.#parts.now.show(figures([
      ['decode', per('vllm:generation_tokens_total'), 'tokens generated, last seconds'],
      ['prefill', per('vllm:prompt_tokens_total'), 'prompt tokens computed, last seconds'],
      ['of the ceiling', busy ? percent(ratio) : '–', 'share of the measured read bandwidth'],
    ]));
  }

  // Of pure decode passes: bytes over their own time.
  #decodeShare(now, then) {
    const read = growth(now, then ?? now, 'sluice:decode_read_bytes_total');
    const time = growth(now, then ?? now, 'sluice:decode_seconds_total');
    const most = now.value('sluice:read_bandwidth_bytes_per_second');
    return read > 0 && time > 0 && most > 0 ? read / time / most : undefined;
  }

  #showRoof(now) {
    const {roof} = this.#parts;
    const bandwidth = now.value('sluice:read_bandwidth_bytes_per_second');
    const macs = now.value('sluice:macs_per_token');
    const weights = now.value('sluice:weight_bytes_per_token');
    const tokens = now.value('sluice:last_step_tokens'), time = now.value('sluice:last_step_seconds');
    if (!(bandwidth > 0 && macs > 0 && weights > 0 && tokens > 0 && time > 0)) {
      roof.note('');
      return roof.show(h('p', {class: 'soft'}, bandwidth > 0 || bandwidth === undefined ?
        'Appears with the first pass.' : 'The read bandwidth is measured with the first passes.'));
    }
    const steps = now.value('sluice:steps_total');
    if (this.#passes.at(-1)?.steps !== steps) {
      if (this.#passes.at(-1)?.steps > steps) this.#passes = [];
      this.#passes.push({steps, intensity: tokens * macs / weights, rate: tokens * macs / time,
                         label: count(tokens, 'token')});
      if (this.#passes.length > TRAIL) this.#passes.shift();
      this.#best = Math.max(...this.#passes.map((pass) => pass.rate));
    }
    const compute = now.value('sluice:compute_ceiling_macs_per_second') ?? 0;
    roof.note(`last pass ${seconds(time)}`);
    // A pass that was no faster than reading allows says nothing about the kernels.
    const best = this.#best > bandwidth * macs / weights ? this.#best : 0;
    roof.show(roofline({bandwidth, compute, best, passes: this.#passes}));
  }

  #showTime(now, then) {
    const {time} = this.#parts;
    let parts = this.#causes(now, then);
    let since = 'last minute';
    if (!parts.some((part) => part.value > 0)) {
      parts = this.#causes(now, null);
      since = 'since the start';
    }
    if (!parts.some((part) => part.value > 0)) {
      time.note('');
      return time.show(h('p', {class: 'soft'}, 'Nothing was computed yet.'));
    }
    time.note(since);
    const total = parts.reduce((sum, part) => sum + part.value, 0);
    const words = parts.filter((part) => part.value > 0)
        .map((part) => `${part.name} ${percent(part.value / total)}`).join(', ');
    time.show(stack(parts, words), legend(parts));
  }

  #causes(now, then) {
    const before = then?.by('sluice:stall_seconds_total', 'cause');
    const stalls = [...now.by('sluice:stall_seconds_total', 'cause')];
    if (stalls.length) {
      return stalls.map(([cause, value]) => {
        const [name, kind] = CAUSES[cause] ?? [cause.replaceAll('_', ' '), 'c10'];
        return {name, kind, value: Math.max(0, value - (before?.get(cause) ?? 0))};
      }).sort((a, b) => b.value - a.value);
    }
    return [['prefill', 'sluice:prefill_seconds_total', 'c2'],
            ['decode', 'sluice:decode_seconds_total', 'c0']].map(([name, metric, kind]) => {
      const value = then ? growth(now, then, metric) : now.value(metric);
      return {name, kind, value: Math.max(0, value ?? 0)};
    });
  }

  #showSpread(part, now, then, name) {
    const all = histogram(now, null, name);
    const total = all.reduce((sum, [, n]) => sum + n, 0);
    if (total <= 0) {
      part.note('');
      return part.show(h('p', {class: 'soft'}, 'Appears when an answer has ended.'));
    }
    let recent = then ? histogram(now, then, name) : [];
    const any = recent.some(([, n]) => n > 0);
    if (!any) recent = all;
    const half = quantile(recent, 0.5), most = quantile(recent, 0.95);
    const words = `half within ${seconds(half)}, 95 % within ${seconds(most)}`;
    part.note(any ? 'last 5 minutes' : 'since the start');
    part.show(bars(recent, all, words), h('p', {class: 'soft small'}, words));
  }

  #showMemory(now) {
    const {memory} = this.#parts;
    const pages = now.value('sluice:kv_pages'), free = now.value('sluice:kv_pages_free');
    const kept = now.value('sluice:kv_pages_kept');
    const shown = [];
    memory.hide(pages === undefined);
    if (pages > 0) {
      const part = (name, value, kind) => ({name, value, kind, shown: percent(value / pages)});
      const parts = [part('in use', pages - free - kept, 'c0'), part('kept for later', kept, 'c1'),
                     part('free', free, 'track')];
      memory.note(count(pages, 'page'));
      shown.push(stack(parts.slice(0, 2).concat(parts[2]),
          parts.map((one) => `${one.name} ${one.shown}`).join(', ')), legend(parts));
    }
    const asked = now.value('vllm:prefix_cache_queries_total');
    const hits = now.value('vllm:prefix_cache_hits_total');
    const resident = now.value('sluice:weights_resident_ratio');
    const rss = now.value('sluice:resident_bytes');
    shown.push(figures([
      asked > 0 && ['prompt tokens cached', percent(hits / asked), `${hits} of ${asked}`],
      resident !== undefined && ['weights in RAM', percent(resident)],
      rss > 0 && ['process', bytes(rss)],
    ].filter(Boolean)));
    memory.show(...shown);
  }

  #showSlots(now, slots) {
    const part = this.#parts.slots;
    const real = slots.filter((slot) => slot.id >= 0);
    const busy = slots.filter((slot) => slot.is_processing || slot.id < 0);
    part.note(`${busy.filter((slot) => slot.id >= 0).length} of ${real.length} busy`);
    if (busy.length === 0) return part.show(h('p', {class: 'soft'}, 'Nobody is waiting.'));
    part.show(h('ul', {class: 'slots'}, ...busy.map((slot) => this.#slot(slot))));
  }

  #slot(slot) {
    const ours = slot.sluice ?? {};
    const phase = ours.phase ?? (slot.is_processing ? 'running' : 'queued');
    const decode = phase === 'decode';
    const done = decode ? ours.generated_tokens : ours.processed_tokens;
    const all = decode ? undefined : ours.prompt_tokens;
    const speed = decode ? ours.decode_tok_s : ours.prefill_tok_s;
    const words = [
      done !== undefined && (all ? `${done} of ${count(all, 'token')}` : count(done, 'token')),
      speed > 0 && rate(speed),
      ours.cached_tokens > 0 && `${ours.cached_tokens} cached`,
      ours.ceiling_ratio > 0 && `${percent(ours.ceiling_ratio)} of the ceiling`,
    ].filter(Boolean).join(' · ');
    const name = slot.id < 0 ? 'waits' : `slot ${slot.id}`;
    return h('li', {}, h('span', {class: `phase ${phase}`}, phase),
        h('span', {}, name), h('span', {class: 'soft'}, words),
        all > 0 && slot.id >= 0 && h('progress', {max: all, value: Math.min(done ?? 0, all),
                                  'aria-label': `Prompt of ${name}`}));
  }
}

// Looks again and again: every second while the page is seen, less often when the panel is folded or
// the server does not answer. `state`: told 'live' or 'lost', and errors that are the user's to mend.
export class Watch {
  #machine;
  #timer = 0;
  #failures = 0;
  #running = false;

  constructor(machine, {model, open, state}) {
    this.#machine = machine;
    this.model = model;
    this.open = open;
    this.state = state;
    document.addEventListener('visibilitychange', () => this.now());
  }

  now() {
    clearTimeout(this.#timer);
    if (!this.#running) this.#tick();
  }

  async #tick() {
    if (document.hidden) return;
    this.#running = true;
    let pause = this.open() ? 1 : 5;
    try {
      await this.#machine.look(this.model(), AbortSignal.timeout(5000));
      this.#failures = 0;
      this.state('live');
    } catch (error) {
      pause = Math.min(10, 2 ** this.#failures++);
      // One look that takes too long may be a busy machine.
      if (error.name !== 'TimeoutError' || this.#failures > 1) this.state('lost', error);
      if (error.status === 401) pause = 1e6;  // until there is another key
    }
    this.#running = false;
    this.#timer = setTimeout(() => this.#tick(), pause * 1000);
  }
}
