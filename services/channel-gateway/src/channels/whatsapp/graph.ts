// Requests to the Graph API over fetch, with parsed responses. The token is only in a header, and is removed from error texts.
import { z } from "zod";
import { parseJson } from "@parley/kit";
import type { OutboundFile } from "../channel.ts";
import { readUpTo, requestFailure, type RequestFailure } from "../transport.ts";

/** A refusal of the platform. `code`: 0 when the body is not an error of the Graph API. */
export interface Refusal {
  kind: "refused";
  status: number;
  code: number;
  description: string;
  retryAfterMs: number | null;
}

export type Answer<Result> = { kind: "ok"; result: Result } | Refusal | RequestFailure;

const GraphError = z.object({
  error: z.object({
    code: z.number().int(),
    message: z.string().default(""),
    error_data: z.object({ details: z.string().optional() }).optional(),
  }),
});

const Media = z.object({ url: z.url(), file_size: z.coerce.number().nonnegative().optional() });

export interface GraphOptions {
  apiRoot: string;
  version: string;
  phoneNumberId: string;
  token: string;
  fetch: () => typeof fetch;
}

class DownloadFailed extends Error {
  override readonly name = "DownloadFailed";
}

/** Hosts that media addresses may have, in addition to that of the API; the token is sent there. */
const mediaHosts = /(?:^|\.)(?:fbsbx\.com|fbcdn\.net|whatsapp\.net|facebook\.com)$/;

export class Graph {
  readonly #options: GraphOptions;
  readonly #root: string;

  constructor(options: GraphOptions) {
    this.#options = options;
    this.#root = `${options.apiRoot.replace(/\/+$/, "")}/${options.version}`;
  }

  /** Posts to an edge of the phone number. */
  async post<Result>(
    edge: "messages" | "media",
    content: object | FormData,
    result: z.ZodType<Result>,
    signal: AbortSignal,
  ): Promise<Answer<Result>> {
    return this.#request(`${this.#options.phoneNumberId}/${edge}`, result, signal, content);
  }

  /** The fields of the phone number. */
  number<Result>(fields: readonly string[], result: z.ZodType<Result>, signal: AbortSignal): Promise<Answer<Result>> {
    return this.#request(`${this.#options.phoneNumberId}?fields=${fields.join(",")}`, result, signal);
  }

  /** The form of an upload. */
  static upload({ name, content }: OutboundFile, mediaType: string): FormData {
    const form = new FormData();
    form.append("messaging_product", "whatsapp");
    form.append("type", mediaType);
    form.append("file", new Blob([Uint8Array.from(content)], { type: mediaType }), name);
    return form;
  }

  /** Downloads media by its id. Rejects with a reason without secrets. */
  async download(id: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array | "too_large"> {
    // An address ends after five minutes; a second one is requested when the first has ended.
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#request(`${id}?phone_number_id=${this.#options.phoneNumberId}`, Media, signal);
      if (answer.kind === "refused") throw new DownloadFailed(`the media was refused: ${answer.description}`);
      if (answer.kind !== "ok") throw new DownloadFailed(`the media was not found: ${answer.reason}`);
      const { url, file_size: size } = answer.result;
      if (!this.#isMediaAddress(url)) throw new DownloadFailed("the media address is not one of the platform");
      if (size !== undefined && size > maxBytes) return "too_large";
      try {
        const headers = { authorization: `Bearer ${this.#options.token}` };
        const response = await this.#options.fetch()(url, { headers, redirect: "error", signal });
        if (response.ok) return await readUpTo(response, maxBytes);
        await response.body?.cancel();
        if (attempt > 1) throw new DownloadFailed(`the platform responded with status ${response.status}`);
      } catch (error) {
        if (error instanceof DownloadFailed) throw error;
        throw new DownloadFailed(signal.aborted ? "the download timed out" : "the connection was lost");
      }
    }
  }

  #isMediaAddress(address: string): boolean {
    const { origin, protocol, hostname } = new URL(address);
    return origin === new URL(this.#root).origin || (protocol === "https:" && mediaHosts.test(hostname));
  }

  async #request<Result>(
    path: string,
    result: z.ZodType<Result>,
    signal: AbortSignal,
    content?: object | FormData,
  ): Promise<Answer<Result>> {
    if (signal.aborted) return { kind: "unreached", reason: "cancelled before it was sent" };
    let response: Response;
    let text: string;
    try {
      response = await this.#options.fetch()(`${this.#root}/${path}`, {
        method: content === undefined ? "GET" : "POST",
        redirect: "manual",
        signal,
        ...(await this.#contentOf(content)),
      });
      text = await response.text();
    } catch (error) {
      return requestFailure(error, signal);
    }
    const json = parseJson(text);
    const parsed = result.safeParse(json);
    if (response.ok) {
      return parsed.success
        ? { kind: "ok", result: parsed.data }
        : { kind: "lost", reason: "the response of the platform is not readable" };
    }
    const { error } = GraphError.safeParse(json).data ?? {};
    const retryAfter = Number(response.headers.get("retry-after") ?? Number.NaN);
    const described = error === undefined ? "" : [error.message, error.error_data?.details].filter(Boolean).join(": ");
    return {
      kind: "refused",
      status: response.status,
      code: error?.code ?? 0,
      description: described.replaceAll(this.#options.token, "[secret]") || `HTTP ${response.status}`,
      retryAfterMs: Number.isFinite(retryAfter) ? retryAfter * 1_000 : null,
    };
  }

  async #contentOf(content: object | FormData | undefined) {
    const headers = { authorization: `Bearer ${this.#options.token}` };
    if (content === undefined) return { headers };
    if (!(content instanceof FormData)) {
      return { headers: { ...headers, "content-type": "application/json" }, body: JSON.stringify(content) };
    }
    // Encoded first: a form that fetch still reads during an abort causes an uncatchable rejection.
    const encoded = new Response(content);
    return {
      headers: { ...headers, "content-type": encoded.headers.get("content-type") ?? "" },
      body: await encoded.arrayBuffer(),
    };
  }
}
