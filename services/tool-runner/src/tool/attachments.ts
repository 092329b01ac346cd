// Stores and fetches attachments by hash. The content is in the store; tools do not depend on the bus or on chunks.
import { fetchBlob, storeBlob, type Bus } from "@parley/bus";
import { WireError, type Attachment } from "@parley/contracts";

export interface AttachmentStore {
  /** Stores content under its hash. Rejects with ContentRejectedError, whose message is for the model. */
  keep(content: Uint8Array): Promise<Omit<Attachment, "name">>;
  /** Fetches content that the call's session refers to. Rejects with ContentRejectedError when there is none with this id. */
  fetch(id: string): Promise<Uint8Array>;
}

/** The store rejects the content, does not have it, or is unavailable; the message names the reason. */
export class ContentRejectedError extends Error {
  override readonly name = "ContentRejectedError";
}

/** The attachments of one call: its grant limits it to the content of its own session. */
export function createAttachmentStore(bus: Bus, grant: string): AttachmentStore {
  return {
    keep: (content) => inWords(() => storeBlob(bus, content, grant)),
    fetch: (id) => inWords(() => fetchBlob(bus, id, grant)),
  };
}

/** For rendering an MCP prompt: without a call, content can be stored but not fetched. */
export function promptContents(bus: Bus): Pick<AttachmentStore, "keep"> {
  return { keep: (content) => inWords(() => storeBlob(bus, content, null)) };
}

async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!WireError.is(error)) throw error;
    const away = error.code === "UNAVAILABLE" || error.code === "TIMEOUT";
    const reason = away ? "attachments are temporarily unavailable; try again later" : error.message;
    throw new ContentRejectedError(reason, { cause: error });
  }
}
