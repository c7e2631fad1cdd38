// Numbers for people: three digits and a unit.

function digits(value) {
  if (value === 0) return '0';
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

export function seconds(value) {
  if (value >= 1) return `${digits(value)} s`;
  return value >= 0.001 ? `${digits(value * 1e3)} ms` : `${digits(value * 1e6)} µs`;
}

// A round number without its zeros: the mark of an axis.
export function mark(value) {
  return seconds(value).replace(/(\.\d*?)0+ /, '$1 ').replace('. ', ' ');
}

export function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (value >= 1024 && i + 1 < units.length) {
    value /= 1024;
    ++i;
  }
  return `${i === 0 ? Math.round(value) : digits(value)} ${units[i]}`;
}

export const rate = (value) => `${digits(value)} tok/s`;
export const percent = (share) => `${Math.round(share * 100)} %`;
export const count = (value, one, many = `${one}s`) => `${value} ${value === 1 ? one : many}`;
export {digits};
