// Content that leaves and enters the workspace by its hash. Kept by the store; a tool knows neither the bus nor chunks.
import { fetchBlob, keepBlob, type Bus } from "@parley/bus";
import { store, WireError, type Attachment } from "@parley/contracts";

export interface KeptContents {
  /** Keeps content under its hash. Rejects with ContentRefused, in words for the model. */
  keep(content: Uint8Array): Promise<Omit<Attachment, "name">>;
  /** With `sessionId`, only content that this session refers to. Rejects with ContentRefused when there is none of this id. */
  fetch(id: string, sessionId?: string): Promise<Uint8Array>;
}

/** The store does not take a content, does not have it, or is away; the message says which. */
export class ContentRefused extends Error {
  override readonly name = "ContentRefused";
}

export function contentsOverBus(bus: Bus): KeptContents {
  return {
    keep: (content) => inWords(() => keepBlob(bus, content)),
    fetch: (id, sessionId) =>
      inWords(async () => {
        if (sessionId !== undefined) await refuseForeign(bus, id, sessionId);
        return fetchBlob(bus, id);
      }),
  };
}

/** The same words as for content that does not exist: nobody learns that it is somebody else's. */
async function refuseForeign(bus: Bus, id: string, sessionId: string): Promise<void> {
  const { blobs } = await bus.request(store.blobHead, { sha256: [id], sessionId });
  if (blobs.length === 0) throw new WireError("NOT_FOUND", `there is no attachment ${id} in this conversation`);
}

async function inWords<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!WireError.is(error)) throw error;
    const away = error.code === "UNAVAILABLE" || error.code === "TIMEOUT";
    const reason = away ? "attachments cannot be reached at the moment; try again" : error.message;
    throw new ContentRefused(reason, { cause: error });
  }
}
