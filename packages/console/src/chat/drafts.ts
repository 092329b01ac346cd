// Messages that are written and not sent yet, by session. They are kept in the browser, so that a reload loses none.
import type { Attachment } from "@parley/contracts";

export interface Draft {
  text: string;
  files: readonly Attachment[];
}

const prefix = "parley.draft.";
const none: Draft = { text: "", files: [] };

/** The draft of a session; empty when there is none, or when the browser stores nothing. */
export function readDraft(session: string): Draft {
  try {
    const stored = localStorage.getItem(prefix + session);
    return stored === null ? none : { ...none, ...(JSON.parse(stored) as Partial<Draft>) };
  } catch {
    return none;
  }
}

/** Keeps the draft of a session; an empty one is removed. */
export function writeDraft(session: string, draft: Draft): void {
  try {
    if (draft.text === "" && draft.files.length === 0) localStorage.removeItem(prefix + session);
    else localStorage.setItem(prefix + session, JSON.stringify(draft));
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
