// Content that leaves and enters the workspace by its hash. Kept by the store; a tool knows neither the bus nor chunks.
import { fetchBlob, keepBlob, type Bus } from "@parley/bus";
import { WireError, type Attachment } from "@parley/contracts";

export interface KeptContents {
  /** Keeps content under its hash. Rejects with ContentRefused, in words for the model. */
  keep(content: Uint8Array): Promise<Omit<Attachment, "name">>;
  /** Only content that the call's session refers to. Rejects with ContentRefused when there is none of this id. */
  fetch(id: string): Promise<Uint8Array>;
}

/** The store does not take a content, does not have it, or is away; the message says which. */
export class ContentRefused extends Error {
  override readonly name = "ContentRefused";
}

/** For one call, by its grant: it has the content of its own session, and what it keeps belongs to that session. */
export function contentsOverBus(bus: Bus, grant: string): KeptContents {
  return {
    keep: (content) => inWords(() => keepBlob(bus, content, grant)),
    fetch: (id) => inWords(() => fetchBlob(bus, id, grant)),
  };
}

/** For a prompt that a person fills in: no call, so nothing can be fetched. */
export function promptContents(bus: Bus): Pick<KeptContents, "keep"> {
  return { keep: (content) => inWords(() => keepBlob(bus, content, null)) };
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
