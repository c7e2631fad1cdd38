// Conversations and settings, kept in this browser. One key each, no list beside
// them that could say something else. What finds no room stays in memory until the
// page is closed, and the caller is told.

const CHAT = 'sluice.chat.';
const SETTING = 'sluice.';

function usable() {
  try {
    const storage = window.localStorage;
    storage.getItem(CHAT);
    return storage;
  } catch {
    return null;
  }
}

// Null if it is not one of ours.
function chatOf(text) {
  try {
    const chat = JSON.parse(text);
    const whole = chat && typeof chat.id === 'string' && Array.isArray(chat.messages) &&
        chat.messages.every((m) => typeof m.role === 'string' && typeof m.content === 'string');
    return whole ? {settings: {}, title: '', updated: 0, ...chat} : null;
  } catch {
    return null;
  }
}

export function newChat(settings = {}) {
  const id = Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join('');
  return {id, title: '', created: Date.now(), updated: Date.now(), settings, messages: []};
}

export class Store {
  #storage = usable();
  #heads = new Map();   // id -> {id, title, updated}
  #memory = new Map();  // id -> text, of those that found no room

  constructor() {
    for (let i = 0; this.#storage && i < this.#storage.length; ++i) {
      const name = this.#storage.key(i);
      if (name.startsWith(CHAT)) this.refresh(name);
    }
  }

  // Latest first.
  list() {
    return [...this.#heads.values()].sort((a, b) => b.updated - a.updated);
  }

  load(id) {
    return chatOf(this.#memory.get(id) ?? this.#storage?.getItem(CHAT + id) ?? null);
  }

  // False: only in memory.
  save(chat) {
    const text = JSON.stringify(chat);
    this.#head(chat);
    try {
      if (!this.#storage) throw new Error('no storage');
      this.#storage.setItem(CHAT + chat.id, text);
      this.#memory.delete(chat.id);
      return true;
    } catch {
      this.#memory.set(chat.id, text);
      return false;
    }
  }

  remove(id) {
    this.#heads.delete(id);
    this.#memory.delete(id);
    this.#storage?.removeItem(CHAT + id);
  }

  // Another tab changed this key: the id of a conversation, or null.
  refresh(name) {
    if (!name?.startsWith(CHAT)) return null;
    const id = name.slice(CHAT.length);
    const chat = chatOf(this.#storage.getItem(name));
    if (chat && chat.id === id) this.#head(chat);
    else this.#heads.delete(id);
    return id;
  }

  setting(name) {
    return this.#storage?.getItem(SETTING + name) ?? null;
  }

  set(name, value) {
    try {
      if (value === null) this.#storage?.removeItem(SETTING + name);
      else this.#storage?.setItem(SETTING + name, value);
    } catch {
      // A setting less is remembered.
    }
  }

  #head(chat) {
    this.#heads.set(chat.id, {id: chat.id, title: chat.title, updated: chat.updated});
  }
}
