// The conversation that is shown: its messages, the one that is being answered, and what
// people do with them. One answer at a time; it goes on when another conversation is looked at.
import {byId, setText} from './dom.js';
import {MessageView} from './message.js';
import {ask, requestOf} from './request.js';

const SAY_MS = 2000;   // between two announcements of an answer that is being written
const SAVE_MS = 1000;
const DRAW_MS = 100;    // the model may need the cores that drawing takes

export class Chat {
  #store;
  #host;
  #views = [];
  #running = null;  // {chat, message, controller}
  #said = 0;

  // `host`: {model(), isBase(model), changed(), notice(text), failed(error), share(tok/s), confirm(text)}.
  constructor(store, host) {
    this.#store = store;
    this.#host = host;
    this.log = byId('log');
    this.live = byId('said');
  }

  get running() {
    return this.#running !== null;
  }

  show(chat, plain = false) {
    this.chat = this.#running?.chat.id === chat.id ? this.#running.chat : chat;
    this.plain = plain;
    this.#rebuild();
    this.log.scrollTop = this.log.scrollHeight;
  }

  send(text) {
    if (this.running) return;
    const {chat} = this;
    if (text !== '') chat.messages.push({role: 'user', content: text});
    if (!chat.messages.length) return;
    if (!chat.title) chat.title = text.trim().split('\n', 1)[0].slice(0, 60);
    return this.#answer();
  }

  // The last answer once more.
  again() {
    const {messages} = this.chat;
    if (this.running || !messages.length) return;
    if (messages.at(-1).role === 'assistant') messages.pop();
    return messages.length ? this.#answer() : undefined;
  }

  // It is not saved again when its answer ends.
  forget() {
    this.chat.deleted = true;
    if (this.#running?.chat === this.chat) this.stop();
  }

  stop() {
    this.#running?.controller.abort();
    return this.running;
  }

  async #edit(message, text) {
    if (this.running || text.trim() === '') return;
    const at = this.chat.messages.indexOf(message);
    const more = this.chat.messages.slice(at + 1).some((one) => one.role === 'user');
    if (more && !(await this.#host.confirm('Send it again and delete what follows?'))) return;
    this.chat.messages.splice(at, Infinity, {role: 'user', content: text});
    this.#answer();
  }

  // A message goes with its answer.
  async #remove(message) {
    if (this.running || !(await this.#host.confirm('Delete this message and its answer?'))) return;
    const {messages} = this.chat;
    const at = messages.indexOf(message);
    const end = messages.findIndex((one, i) => i > at && one.role === 'user');
    messages.splice(at, (end < 0 ? messages.length : end) - at);
    this.#save(this.chat);
    this.#rebuild();
  }

  #save(chat) {
    if (chat.deleted) return;
    chat.updated = Date.now();
    if (!this.#store.save(chat)) {
      this.#host.notice('The browser has no room left: this conversation is kept until the page is ' +
          'closed. Export it, or delete others.');
    }
    this.#host.changed();
  }

  #rebuild() {
    const {messages} = this.chat;
    const before = new Map(this.#views.map((view) => [view.message, view]));
    // What stays as it is keeps its element, and with it the focus.
    this.#views = messages.map((message, at) => {
      const last = at === messages.length - 1, view = before.get(message);
      if (view?.last === last && view.plain === (this.plain || message.role === 'user')) return view;
      return this.#view(message, last);
    });
    const stay = new Set(this.#views.map((view) => view.root));
    for (const child of [...this.log.children]) {
      if (!stay.has(child)) child.remove();
    }
    this.#views.forEach((view, at) => {
      const there = this.log.children[at] ?? null;
      if (there !== view.root) this.log.insertBefore(view.root, there);
      view.busy = view.message === this.#running?.message;
      view.update();
    });
    this.log.classList.toggle('empty', !messages.length);
    this.log.classList.toggle('flowing', this.plain);
  }

  #view(message, last) {
    const mine = message.role === 'user';
    const view = new MessageView(message, {
      edit: mine && ((text) => this.#edit(message, text)),
      remove: mine && (() => this.#remove(message)),
      again: !mine && last && (() => this.again()),
    }, this.plain);
    view.last = last;
    return view;
  }

  async #answer() {
    const {chat} = this;
    const message = {role: 'assistant', content: ''};
    const running = this.#running = {chat, message, controller: new AbortController()};
    this.#said = 0;
    chat.messages.push(message);
    this.#save(chat);
    this.show(chat, this.plain);
    setText(this.live, 'Answering');
    try {
      const {signal} = running.controller;
      const model = this.#host.model();
      const base = await this.#host.isBase(model, signal);
      if (this.chat === chat && this.plain !== base) this.show(chat, base);
      await ask(...requestOf(chat, model, base), message, {signal, changed: this.#changes(running)});
      this.#addShare(message.stats);
    } catch (error) {
      if (error.name !== 'AbortError') {
        message.error = `${error.message[0].toUpperCase()}${error.message.slice(1)}.`;
        this.#host.failed(error);
      } else if (message.content === '' && !message.reasoning) {
        chat.messages.splice(chat.messages.indexOf(message), 1);
      }
    }
    this.#running = null;
    this.#save(chat);
    if (this.chat === chat) this.#rebuild();
    this.#follow();
    setText(this.live, message.error ?? this.#unsaid(message) ?? '');
  }

  // What a piece of the answer sets off: drawing it, saving it, a sentence spoken, each now and then.
  #changes(running) {
    let drawn = true, saved = performance.now(), spoken = saved;
    const draw = () => {
      drawn = true;
      if (this.chat !== running.chat || this.#running !== running) return;
      this.#views.at(-1).update();
      this.#follow();
    };
    return () => {
      const now = performance.now();
      if (now - saved > SAVE_MS) {
        saved = now;
        this.#save(running.chat);
      }
      if (now - spoken > SAY_MS) {
        const sentence = this.#unsaid(running.message, true);
        if (sentence) setText(this.live, sentence);
        if (sentence) spoken = now;
      }
      if (!drawn || this.chat !== running.chat) return;
      drawn = false;
      setTimeout(draw, DRAW_MS);
    };
  }

  // What was not read out yet; `whole`: up to the end of a sentence.
  #unsaid(message, whole = false) {
    const rest = message.content.slice(this.#said);
    const end = whole ? Math.max(rest.lastIndexOf('. '), rest.lastIndexOf('\n')) + 1 : rest.length;
    if (end <= 0) return null;
    this.#said += end;
    return rest.slice(0, end).trim();
  }

  // Without the server's own word: what the weights alone come to.
  #addShare(stats) {
    if (stats.ceiling !== undefined || !(stats.decode > 0)) return;
    stats.ceiling = this.#host.share(stats.decode);
    stats.atLeast = true;
  }

  // The end stays in sight of who looks at it.
  #follow() {
    const {log} = this;
    if (log.scrollHeight - log.scrollTop - log.clientHeight < 160) log.scrollTop = log.scrollHeight;
  }
}
