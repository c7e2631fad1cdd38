// Counts checks, and says in one line what each expected and found.
import {inspect, isDeepStrictEqual} from 'node:util';

export const totals = {passed: 0, failed: 0, skipped: 0};

function count(ok, name, detail) {
  if (ok) ++totals.passed; else ++totals.failed;
  console.log(ok ? `ok      ${name}` : `FAILED  ${name}: ${detail}`);
}

export function equal(name, found, wanted) {
  count(isDeepStrictEqual(found, wanted), name,
        `expected ${inspect(wanted)}, found ${inspect(found, {depth: 6})}`);
}

export function isTrue(name, condition, found = condition) {
  count(Boolean(condition), name, `found ${inspect(found)}`);
}

// An exception is one failure and not the end of the rest.
export async function part(name, run) {
  try {
    await run();
  } catch (error) {
    count(false, name, error.stack);
  }
}
