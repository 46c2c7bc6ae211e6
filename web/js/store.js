// Keeps the current conversation in this browser's IndexedDB, so that a reload loses nothing.
// Without IndexedDB (private windows of some browsers) the page works and forgets on reload.

const DATABASE = "fathom";
const STORE = "conversation";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE);
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run(mode, action) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const request = action(database.transaction(STORE, mode).objectStore(STORE));
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  }).finally(() => database.close());
}

// turns: [{ role, text, reasoning, pictures: [data URL], stats, error }]
export async function save_turns(turns) {
  try {
    await run("readwrite", (store) => store.put(turns, "turns"));
  } catch {
    // Nothing to tell: the conversation goes on, only a reload would lose it.
  }
}

export async function load_turns() {
  try {
    return (await run("readonly", (store) => store.get("turns"))) ?? [];
  } catch {
    return [];
  }
}
