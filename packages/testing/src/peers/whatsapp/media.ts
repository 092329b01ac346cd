// Media: uploads with their types and sizes, and downloads by an address that ends after five minutes.
import { createHash, randomUUID } from "node:crypto";
import { graphError, type GraphResult } from "./errors.ts";
import type { WhatsAppState } from "./state.ts";

const mebibyte = 1024 * 1024;
/** Supported media types, and the largest file of each in bytes. */
const uploadLimits: readonly (readonly [RegExp, number])[] = [
  [/^audio\/(?:aac|mp4|mpeg|amr|ogg)(?:;|$)/, 16 * mebibyte],
  [/^image\/(?:jpeg|png)$/, 5 * mebibyte],
  [/^image\/webp$/, mebibyte / 2],
  [/^video\/(?:mp4|3gpp)$/, 16 * mebibyte],
  [/^(?:text\/plain|application\/pdf|application\/msword|application\/vnd\.(?:ms-|openxmlformats-))/, 100 * mebibyte],
];
const urlMs = 5 * 60 * 1_000;

export async function upload(form: FormData, state: WhatsAppState): Promise<GraphResult> {
  const file = form.get("file");
  if (form.get("messaging_product") !== "whatsapp") return graphError(100, "messaging_product must be whatsapp");
  if (!(file instanceof File)) return graphError(100, "Param file must be a file");
  const limit = uploadLimits.find(([types]) => types.test(file.type))?.[1];
  if (limit === undefined) return graphError(100, "Param file must be a file with one of the supported types");
  if (file.size > limit) return graphError(131053, `File size ${file.size} is too large`);
  const id = state.mediaId();
  const content = Buffer.from(await file.arrayBuffer());
  state.media.set(id, { mediaType: file.type, name: file.name, content, url: null });
  return { status: 200, body: { id } };
}

/** GET /<version>/<media id>: a new address for the download. */
export function mediaUrl(id: string, root: string, state: WhatsAppState): GraphResult {
  const media = state.media.get(id);
  if (media === undefined) return graphError(100, `Object with ID '${id}' does not exist`);
  const key = randomUUID();
  media.url = { key, expiresAtMs: Date.now() + urlMs };
  return {
    status: 200,
    body: {
      messaging_product: "whatsapp",
      url: `${root}/lookaside/${key}`,
      mime_type: media.mediaType,
      sha256: createHash("sha256").update(media.content).digest("hex"),
      file_size: media.content.length,
      id,
    },
  };
}

/** The content of a download address; null: it has ended or never existed. */
export function downloadOf(key: string, state: WhatsAppState): Buffer | null {
  const media = [...state.media.values()].find(({ url }) => url?.key === key);
  return media?.url != null && media.url.expiresAtMs > Date.now() ? media.content : null;
}
