// Texts that are written and not sent or saved yet: messages by session, documents by `documentDraft`. They are kept in the browser, so that
// a reload or another view loses none.
import type { Attachment } from "@parley/contracts";

export interface Draft {
  text: string;
  files: readonly Attachment[];
}

const prefix = "parley.draft.";
const none: Draft = { text: "", files: [] };

/** The name of the draft of a document. */
export function documentDraft(path: string): string {
  return `document:${path}`;
}

/** The draft of a session or document; empty when there is none, or when the browser stores nothing. */
export function readDraft(name: string): Draft {
  try {
    const stored = localStorage.getItem(prefix + name);
    return stored === null ? none : { ...none, ...(JSON.parse(stored) as Partial<Draft>) };
  } catch {
    return none;
  }
}

/** Keeps a draft; an empty one is removed. */
export function writeDraft(name: string, draft: Draft): void {
  try {
    if (draft.text === "" && draft.files.length === 0) localStorage.removeItem(prefix + name);
    else localStorage.setItem(prefix + name, JSON.stringify(draft));
  } catch {
    // The browser stores nothing, or no more: the draft is lost with the page.
  }
}

/** Removes all drafts, for the end of the sign-in: the next person at this browser must not read them. */
export function clearDrafts(): void {
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(prefix)) localStorage.removeItem(key);
  } catch {
    // The browser stores nothing.
  }
}
