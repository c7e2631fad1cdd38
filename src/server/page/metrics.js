// What /metrics says, read: samples by name, of one model; and what changed since
// an earlier reading.

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

function numberOf(text) {
  if (text === '+Inf') return Infinity;
  if (text === '-Inf') return -Infinity;
  return Number(text);
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) {
    labels[name] = value.replace(/\\(.)/g, (_, c) => (c === 'n' ? '\n' : c));
  }
  return labels;
}

export class Reading {
  #families = new Map();  // name -> [{labels, value}]
  #model = null;

  // `time`: seconds, of any clock that only goes forward.
  constructor(text, time) {
    this.time = time;
    for (const line of text.split('\n')) {
      const found = line[0] !== '#' && LINE.exec(line);
      if (!found) continue;
      const sample = {labels: labelsOf(found[2] ?? ''), value: numberOf(found[3])};
      if (!this.#families.has(found[1])) this.#families.set(found[1], []);
      this.#families.get(found[1]).push(sample);
    }
  }

  // Which model the values below are of: this one, or the first that is loaded (it may have
  // several names).
  look(model) {
    const names = this.models();
    this.#model = names.includes(model) ? model : names[0] ?? null;
  }

  models() {
    const samples = this.#families.get('vllm:num_requests_running') ?? [];
    return samples.map((sample) => sample.labels.model_name);
  }

  #samples(name) {
    return (this.#families.get(name) ?? []).filter(({labels}) =>
      labels.model_name === undefined || this.#model === null ||
      labels.model_name === this.#model);
  }

  // The sum over its samples; undefined: there is none.
  value(name) {
    const samples = this.#samples(name);
    return samples.length ? samples.reduce((sum, {value}) => sum + value, 0) : undefined;
  }

  // label's value -> value.
  by(name, label) {
    return new Map(this.#samples(name).map((one) => [one.labels[label], one.value]));
  }

  // [[upper bound, cumulative count]], in ascending order.
  buckets(name) {
    const all = this.#samples(`${name}_bucket`).map((one) => [numberOf(one.labels.le), one.value]);
    return all.sort((a, b) => a[0] - b[0]);
  }
}

// A counter's growth; undefined where either reading lacks it.
export function growth(now, then, name) {
  const a = now.value(name), b = then?.value(name);
  return a === undefined || b === undefined ? undefined : a - b;
}

// [[upper bound, count of this bucket alone]], since `then` (null: since the server's start).
export function histogram(now, then, name) {
  const before = new Map(then ? then.buckets(name) : []);
  let last = 0;
  return now.buckets(name).map(([le, count]) => {
    const cumulative = count - (before.get(le) ?? 0);
    const own = cumulative - last;
    last = cumulative;
    return [le, own];
  });
}

// The value below which `share` of them are, linear within its bucket; undefined: there are none.
export function quantile(bars, share) {
  const total = bars.reduce((sum, [, count]) => sum + count, 0);
  let left = share * total, low = 0;
  if (total <= 0) return undefined;
  for (const [le, count] of bars) {
    if (count > 0 && left <= count) return le === Infinity ? low : low + (le - low) * left / count;
    left -= count;
    low = le;
  }
  return low;
}

// The last five minutes of readings, thinned out, to compare with. A server that counts from the
// start again empties it.
export class Window {
  #kept = [];

  add(reading) {
    const last = this.#kept.at(-1);
    const steps = reading.value('sluice:steps_total') ?? 0;
    if (last && (steps < (last.value('sluice:steps_total') ?? 0) ||
                 reading.models().join() !== last.models().join())) {
      this.#kept = [];
    }
    while (this.#kept.length > 1 && reading.time - this.#kept[1].time > 300) this.#kept.shift();
    this.#kept.push(reading);
    // Of what is older than ten seconds every other one is enough.
    if (this.#kept.length > 80) {
      const young = this.#kept.filter((one) => reading.time - one.time <= 10);
      const old = this.#kept.filter((one) => reading.time - one.time > 10);
      this.#kept = [...old.filter((_, i) => i % 2 === 0), ...young];
    }
  }

  // The latest reading that is at least so old; else the oldest. Undefined: there is only one.
  before(seconds) {
    const now = this.#kept.at(-1);
    if (this.#kept.length < 2) return undefined;
    return this.#kept.findLast((one) => now.time - one.time >= seconds) ?? this.#kept[0];
  }
}
