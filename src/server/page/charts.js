// Three charts in SVG: a roofline, a histogram, a bar in parts. Colours are
// classes of page.css; what a chart shows is also its label, in words.
import {s} from './dom.js';
import {digits, mark, percent} from './units.js';

const WIDTH = 340;

function line(kind, x1, y1, x2, y2) {
  return s('line', {class: kind, x1, y1, x2, y2});
}

function text(kind, x, y, content, more = {}) {
  return s('text', {class: kind, x, y, ...more}, content);
}

function picture(height, label, children) {
  return s('svg', {viewBox: `0 0 ${WIDTH} ${height}`, role: 'img', 'aria-label': label}, ...children);
}

// A logarithmic axis over whole decades.
function logAxis(least, most, from, to) {
  const low = Math.floor(Math.log10(least));
  const high = Math.max(low + 1, Math.ceil(Math.log10(most)));
  const at = (value) => from + (Math.log10(value) - low) / (high - low) * (to - from);
  const ticks = Array.from({length: high - low + 1}, (_, i) => 10 ** (low + i));
  return {at, ticks, low: 10 ** low, high: 10 ** high};
}

const short = (value) => (value >= 1e4 ? value.toExponential(0).replace('e+', 'e') : String(value));

// Roofs: `bandwidth` in bytes per second, `compute` in MAC per second (0: not known; then `best`,
// the fastest pass seen, stands for it and says so; both 0: the slope has no end). `passes`: {intensity in MAC per byte, rate in
// MAC per second, label}, latest last.
export function roofline({bandwidth, compute, best, passes}) {
  const height = 230, left = 38, right = WIDTH - 8, top = 12, bottom = height - 34;
  const xs = passes.map((p) => p.intensity), ys = passes.map((p) => p.rate);
  const flat = compute || best || Infinity;
  const knee = flat === Infinity ? Math.max(...xs) : flat / bandwidth;
  const x = logAxis(Math.min(...xs, knee) / 2, Math.max(...xs, knee) * 2, left, right);
  const peak = flat === Infinity ? x.high * bandwidth : flat * 1.3;
  const y = logAxis(Math.min(...ys) / 2 / 1e9, Math.max(...ys, peak) / 1e9, bottom, top);
  const parts = [];
  for (const tick of x.ticks) {
    parts.push(line('grid', x.at(tick), top, x.at(tick), bottom),
        text('soft middle', x.at(tick), bottom + 14, short(tick)));
  }
  for (const tick of y.ticks) {
    parts.push(line('grid', left, y.at(tick), right, y.at(tick)),
        text('soft end', left - 5, y.at(tick) + 3.5, short(tick)));
  }
  parts.push(text('soft middle', (left + right) / 2, height - 5, 'multiply-adds per byte read'),
      text('soft', 0, 0, '10⁹ multiply-adds per second', {
        class: 'soft middle', transform: `translate(10 ${(top + bottom) / 2}) rotate(-90)`}));
  const start = Math.max(x.low, y.low * 1e9 / bandwidth);
  const x0 = x.at(start), y0 = y.at(start * bandwidth / 1e9);
  const corner = Math.min(flat / bandwidth, x.high, y.high * 1e9 / bandwidth);
  const xk = x.at(corner), yk = y.at(corner * bandwidth / 1e9);
  const angle = Math.atan2(yk - y0, xk - x0) * 180 / Math.PI;
  if (flat !== Infinity) {
    parts.push(line(compute ? 'roof' : 'roof guess', xk, yk, right, yk),
        text('roof-name end', right - 2, yk - 5,
            compute ? `kernels ${digits(flat / 1e9)}·10⁹/s` : 'fastest pass seen'));
  }
  parts.push(line('roof', x0, y0, xk, yk),
      text('roof-name middle', 0, 0, `reads ${digits(bandwidth / 1e9)} GB/s`, {
        transform: `translate(${x0 + 0.42 * (xk - x0)} ${y0 + 0.42 * (yk - y0)}) ` +
            `rotate(${angle}) translate(0 -6)`}));
  passes.forEach((pass, i) => {
    const last = i === passes.length - 1;
    const px = x.at(pass.intensity), py = y.at(pass.rate / 1e9);
    if (last) {
      const roof = Math.min(bandwidth * pass.intensity, flat);
      parts.push(line('drop', px, py, px, y.at(Math.max(roof, pass.rate) / 1e9)));
    }
    parts.push(s('circle', {class: last ? 'now' : 'past', cx: px, cy: py, r: last ? 5 : 2.5}));
  });
  const last = passes.at(-1);
  const roof = Math.min(bandwidth * last.intensity, flat);
  const px = x.at(last.intensity), py = y.at(last.rate / 1e9);
  // A share of a roof that is only a guess says nothing.
  const known = compute || bandwidth * last.intensity < flat;
  const label = known ? `${last.label}, ${percent(last.rate / roof)} of the roof` : last.label;
  parts.push(text('strong', Math.min(px + 9, right - 6 * label.length), py + 16, label));
  const words = `Roofline. Memory reads ${digits(bandwidth / 1e9)} gigabytes per second. ` +
      `The last pass, ${label}.`;
  return picture(height, words, parts);
}

// Buckets [[upper bound in seconds, count]] of lately, before those of all time as outlines: both
// as shares of their own whole.
export function bars(recent, all, name) {
  const height = 118, left = 4, right = WIDTH - 4, top = 8, bottom = height - 22;
  const used = all.map(([, n], i) => (n > 0 || (recent[i]?.[1] ?? 0) > 0 ? i : -1));
  const first = Math.max(0, used.findIndex((i) => i >= 0) - 1);
  const end = Math.min(all.length, Math.max(...used) + 2, Math.max(first + 6, Math.max(...used) + 2));
  const shares = (list) => {
    const total = list.reduce((sum, [, n]) => sum + n, 0);
    return list.slice(first, end).map(([, n]) => (total > 0 ? n / total : 0));
  };
  const now = shares(recent), ever = shares(all);
  const most = Math.max(...now, ever.length ? Math.max(...ever) : 0, 0.01);
  const step = (right - left) / (end - first);
  const y = (share) => bottom - share / most * (bottom - top);
  const parts = [line('grid', left, bottom, right, bottom)];
  ever.forEach((share, i) => {
    const at = left + i * step;
    if (share > 0) {
      parts.push(s('rect', {class: 'ever', x: at + 1, y: y(share), width: step - 2,
                            height: bottom - y(share)}));
    }
    if (now[i] > 0) {
      parts.push(s('rect', {class: 'bar', x: at + 3, y: y(now[i]), width: Math.max(1, step - 6),
                            height: bottom - y(now[i])}));
    }
  });
  // The bound between two bars, as many as have room.
  const every = Math.ceil((end - first) / 6);
  for (let i = every - 1; i < end - first - 1; i += every) {
    parts.push(line('grid', left + (i + 1) * step, bottom, left + (i + 1) * step, bottom + 4),
        text('soft middle', left + (i + 1) * step, bottom + 16, mark(all[first + i][0])));
  }
  return picture(height, name, parts);
}

// Parts of a whole: [{name, value, kind}]; the kinds are classes of colours.
export function stack(parts, name) {
  const height = 18, total = parts.reduce((sum, part) => sum + part.value, 0);
  let at = 0;
  const rects = parts.filter((part) => part.value > 0).map((part) => {
    const width = part.value / total * WIDTH;
    const rect = s('rect', {class: part.kind, x: at, y: 0, height,
                            width: Math.max(0.5, width - 1)});
    at += width;
    return rect;
  });
  return picture(height, name, [s('rect', {class: 'track', width: WIDTH, height}), ...rects]);
}
