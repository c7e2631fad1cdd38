// Puts the page together: the conversation, the list of them, the machine, dialogs and keys.
import {ApiError, call, key, setKey} from './api.js';
import {Chat} from './chat.js';
import {byId, h, setText} from './dom.js';
import {Machine, Watch} from './live.js';
import {Store, newChat} from './store.js';

const FIELDS = ['system', 'temperature', 'top_p', 'max_tokens', 'seed'];
const THEMES = ['auto', 'light', 'dark'];
const wide = matchMedia('(min-width: 1100px)');

const store = new Store();
const machine = new Machine(byId('machine'));
const bases = new Map();  // model -> whether it only completes
let models = [];
let notice = '', lost = '';

// --- what the page says about itself ---

function showBanner() {
  setText(byId('banner'), lost || notice);
  byId('banner').classList.toggle('lost', lost !== '');
}

function confirm(text) {
  const dialog = byId('confirm');
  setText(byId('confirm-text'), text);
  dialog.returnValue = 'no';
  dialog.showModal();
  return new Promise((done) => {
    dialog.addEventListener('close', () => done(dialog.returnValue === 'yes'), {once: true});
  });
}

let later = false;  // the key was asked for and not given, and nothing was sent since

function askForKey() {
  if (later) return;
  const dialog = byId('key-dialog');
  if (dialog.open) return;
  setText(byId('key-text'), key() ? 'The key that was given is not one of this server\'s.' :
    'This server asks for a key. It is kept until this tab is closed.');
  dialog.showModal();
}

function failed(error) {
  if (error.status === 401) askForKey();
  else if (error.status === 0) watch.now();
}

// --- models ---

async function loadModels() {
  const list = await (await call('v1/models')).json();
  models = list.data;
  const select = byId('model'), chosen = select.value || store.setting('model');
  select.replaceChildren(...models.map(({id, meta}) =>
    h('option', {value: id}, meta ? id : `${id} (not loaded)`)));
  const there = models.some(({id}) => id === chosen);
  select.value = there ? chosen : models[0]?.id ?? '';
  const now = models.find(({id}) => id === select.value);
  if (now?.meta) await isBase(now.id);
  showKind();
}

const model = () => byId('model').value;

// Whether this model has no chat template. Asking loads the model if it is not.
async function isBase(name, signal) {
  if (!bases.has(name)) {
    const props = await (await call(`props?model=${encodeURIComponent(name)}`, {signal})).json();
    bases.set(name, props.chat_template === '');
    showKind();
  }
  return bases.get(name);
}

function showKind() {
  const base = bases.get(model()) === true;
  const note = byId('note');
  note.hidden = !base;
  setText(note, base ? 'This model has no chat template, so it continues your text: everything above ' +
      'is its prompt, word for word. Send nothing to let it go on.' : '');
  byId('system-field').hidden = base;
  byId('prompt').placeholder = base ? 'Begin a text' : 'Write a message';
  if (chat.chat && chat.plain !== base && !chat.running) chat.show(chat.chat, base);
}

// --- conversations ---

const chat = new Chat(store, {
  model,
  isBase,
  changed: showState,
  failed,
  confirm,
  notice: (text) => { notice = text; showBanner(); },
  share: (speed) => Machine.share(machine.reading, speed),
});

function open(one) {
  chat.show(one, bases.get(model()) === true);
  for (const name of FIELDS) byId(name).value = one.settings[name] ?? '';
  showState();
}

function start() {
  if (chat.chat && !chat.chat.messages.length) return byId('prompt').focus();
  open(newChat({...chat.chat?.settings}));
  byId('prompt').focus();
}

function move(by) {
  const ids = store.list().map(({id}) => id);
  const at = ids.indexOf(chat.chat.id);
  const next = store.load(ids[at < 0 ? 0 : at + by]);
  if (next) open(next);
}

async function remove() {
  const {id, title, messages} = chat.chat;
  if (messages.length && !(await confirm(`Delete “${title || 'this conversation'}”?`))) return;
  chat.forget();
  store.remove(id);
  notice = '';
  showBanner();
  open(store.load(store.list()[0]?.id) ?? newChat(chat.chat.settings));
}

function save() {
  const {id, title, created, updated, settings, messages} = chat.chat;
  const text = JSON.stringify({sluice: 1, id, title, created, updated, model: model(), settings,
                               messages}, null, 2);
  const url = URL.createObjectURL(new Blob([text], {type: 'application/json'}));
  const name = (title || 'conversation').replace(/[^\p{L}\p{N}]+/gu, '-').slice(0, 40);
  h('a', {href: url, download: `${name}.json`}).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

let listed = '';

// Built again only where it changed, and the focus stays on its conversation.
function showList(current) {
  const list = store.list();
  const now = JSON.stringify([current, list.map(({id, title}) => [id, title])]);
  if (now === listed) return;
  listed = now;
  const focused = byId('chats').contains(document.activeElement) ?
    document.activeElement.dataset.id : undefined;
  byId('chats').replaceChildren(...list.map(({id, title}) => h('li', {}, h('button', {
    type: 'button', 'data-id': id, 'aria-current': id === current && 'true', onclick: () => {
      open(store.load(id) ?? newChat());
      if (!wide.matches) fold('list', false);
    }}, title || 'New conversation'))));
  if (focused) byId('chats').querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

function showState() {
  const {id, title, messages, settings} = chat.chat;
  setText(byId('title'), title || 'New conversation');
  showList(id);
  byId('stop').hidden = !chat.running;
  byId('send').hidden = chat.running;
  byId('export').disabled = byId('delete-chat').disabled = !messages.length;
  const set = FIELDS.filter((name) => settings[name]).length;
  setText(byId('changed'), set ? `${set} set` : '');
}

// --- panels, theme, keys ---

function fold(name, shown) {
  const panel = byId(name);
  panel.hidden = !shown;
  byId(`show-${name}`).setAttribute('aria-expanded', shown);
  document.body.classList.toggle(`with-${name}`, shown);
  if (wide.matches) store.set(`panel.${name}`, shown ? 'open' : 'closed');
  else if (shown) fold(name === 'list' ? 'machine' : 'list', false);
  if (shown && name === 'machine') watch.now();
}

function toggle(name) {
  fold(name, byId(name).hidden);
}

function unfoldWide() {
  for (const name of ['list', 'machine']) {
    fold(name, wide.matches && store.setting(`panel.${name}`) !== 'closed');
  }
}

function showTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(byId('theme-name'), theme);
}

function changeTheme() {
  const now = document.documentElement.dataset.theme ?? 'auto';
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  store.set('theme', next === 'auto' ? null : next);
  showTheme(next);
}

const KEYS = {
  KeyN: start, KeyR: () => chat.again(), KeyC: () => toggle('list'), KeyM: () => toggle('machine'),
  KeyK: () => byId('help').showModal(), ArrowUp: () => move(-1), ArrowDown: () => move(1),
};

function escape() {
  if (chat.stop()) return;
  for (const name of ['list', 'machine']) {
    if (wide.matches || byId(name).hidden) continue;
    fold(name, false);
    byId(`show-${name}`).focus();
  }
}

function submit(event) {
  event.preventDefault();
  const field = byId('prompt');
  const text = bases.get(model()) ? field.value : field.value.trim();
  later = false;
  if (chat.running || (text === '' && !(bases.get(model()) && chat.chat.messages.length))) return;
  field.value = '';
  chat.send(text);
}

function listen() {
  byId('ask').addEventListener('submit', submit);
  byId('prompt').addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && !event.shiftKey && !event.isComposing) submit(event);
  });
  byId('stop').addEventListener('click', () => chat.stop());
  byId('new-chat').addEventListener('click', () => {
    start();
    if (!wide.matches) fold('list', false);
  });
  byId('export').addEventListener('click', save);
  byId('delete-chat').addEventListener('click', remove);
  for (const name of FIELDS) {
    byId(name).addEventListener('input', (event) => {
      chat.chat.settings[name] = event.target.value;
      if (chat.chat.messages.length) store.save(chat.chat);
      showState();
    });
  }
  byId('model').addEventListener('change', () => {
    store.set('model', model());
    showKind();
    const now = models.find(({id}) => id === model());
    if (now?.meta) isBase(now.id).catch(failed);
    watch.now();
  });
  for (const name of ['list', 'machine']) {
    byId(`show-${name}`).addEventListener('click', () => toggle(name));
  }
  byId('show-help').addEventListener('click', () => byId('help').showModal());
  byId('theme').addEventListener('click', changeTheme);
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault();
    setKey(byId('key').value);
    byId('key').value = '';
    later = false;
    byId('key-dialog').close();
    watch.now();
  });
  byId('key-later').addEventListener('click', () => byId('key-dialog').close());
  byId('key-dialog').addEventListener('close', () => { later = !key(); });
  wide.addEventListener('change', unfoldWide);
  addEventListener('storage', (event) => {
    const id = store.refresh(event.key);
    if (id && id === chat.chat.id && !chat.running) open(store.load(id) ?? newChat());
    else showState();
  });
  addEventListener('keydown', (event) => {
    if (document.querySelector('dialog[open]')) return;
    if (event.key === 'Escape') return escape();
    if (!event.altKey || event.ctrlKey || event.metaKey || !KEYS[event.code]) return;
    event.preventDefault();
    KEYS[event.code]();
  });
}

// --- the machine ---

let known = false;  // the models are listed, from the server that answers now

function listModels() {
  if (known) return;
  known = true;
  bases.clear();
  loadModels().catch((problem) => {
    known = false;
    failed(problem);
  });
}

const watch = new Watch(machine, {
  model,
  open: () => !byId('machine').hidden,
  state(state, error) {
    if (state === 'live') {
      lost = '';
      listModels();
    } else if (error instanceof ApiError && error.status === 401) {
      lost = 'The server wants an API key.';
      askForKey();
      listModels();  // it may be for the metrics only
    } else {
      known = false;
      lost = 'The server does not answer. Reconnecting …';
    }
    showBanner();
  },
});

open(store.load(store.list()[0]?.id) ?? newChat());
listen();
showTheme(document.documentElement.dataset.theme ?? 'auto');
unfoldWide();
watch.now();
if (wide.matches) byId('prompt').focus();
