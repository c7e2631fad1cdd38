#!/usr/bin/env node
// Drives the page in a headless Chromium against a real server:
//
//   tests/page/run.mjs --sluice build/release/sluice --model gemma-3-270m [--shots DIR] [CASE...]
//
// The browser is the system's (Debian's package chromium), or the one that CHROMIUM names; without
// one everything is skipped. What drives it is installed from npm into a cache folder, in the versions
// of package.json. Ends with the line `N passed, N failed, N skipped`; exit code 1 after a failure.
import {execFileSync} from 'node:child_process';
import {createHash} from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {parseArgs} from 'node:util';

import {Browser, findChromium} from './browser.mjs';
import {CASES} from './cases.mjs';
import {part, totals} from './checks.mjs';

function install() {
  const source = fileURLToPath(new URL('package.json', import.meta.url));
  const digest = createHash('sha256').update(fs.readFileSync(source)).digest('hex').slice(0, 12);
  const base = process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache');
  const folder = path.join(base, 'sluice', 'clients', `page-${digest}`);
  if (!fs.existsSync(path.join(folder, 'ready'))) {
    fs.rmSync(folder, {recursive: true, force: true});
    fs.mkdirSync(folder, {recursive: true});
    fs.copyFileSync(source, path.join(folder, 'package.json'));
    console.log(`==> npm install into ${folder}`);
    execFileSync('npm', ['install', '--no-audit', '--no-fund', '--loglevel', 'error', '--prefix', folder],
                 {stdio: ['ignore', 'inherit', 'inherit'], timeout: 600000});
    fs.writeFileSync(path.join(folder, 'ready'), '');
  }
  return folder;
}

function end() {
  console.log(`${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  process.exit(totals.failed ? 1 : 0);
}

const {values, positionals} = parseArgs({
  options: {sluice: {type: 'string'}, model: {type: 'string'}, shots: {type: 'string'}},
  allowPositionals: true,
});
const unknown = positionals.find((name) => !CASES[name]);
if (!values.sluice || !values.model || unknown) {
  console.error(`usage: run.mjs --sluice PROGRAM --model MODEL [--shots DIR] [CASE...]; the cases are ` +
                Object.keys(CASES).join(', '));
  process.exit(2);
}
const program = findChromium();
if (!program) {
  console.log('skipped: no Chromium (apt-get install chromium, or set CHROMIUM)');
  ++totals.skipped;
  end();
}
const browser = await new Browser(install(), values.shots).start(program);
try {
  for (const name of positionals.length ? positionals : Object.keys(CASES)) {
    console.log(`\n=== ${name}`);
    await part(name, () => CASES[name](browser, values));
  }
} finally {
  await browser.stop();
}
console.log('');
end();
