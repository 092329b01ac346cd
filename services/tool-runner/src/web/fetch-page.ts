// Sends one GET request to a checked address, with a size limit, and follows redirects after checking each target.
// It ignores proxy variables of the environment: a proxy would choose the destination.
import { abortable, http } from "@parley/kit";
import { lookup } from "node:dns/promises";
import type { IncomingMessage } from "node:http";
import https from "node:https";
import { pipeline, type Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { findTarget, BlockedTargetError, type Resolver, type Target, type TargetPolicy } from "../network/target.ts";

export interface WebAnswer {
  /** After redirects. */
  url: string;
  status: number;
  /** The unparsed header; "" when there is none. */
  contentType: string;
  body: Buffer;
  /** The body exceeds the limit; `body` is its beginning. */
  cut: boolean;
}

export interface GetOptions {
  policy: TargetPolicy;
  resolve: Resolver;
  /** After decompression. */
  maxBytes: number;
  /** Refuse redirects to another host: nobody approved a request to it. */
  sameHost: boolean;
  signal: AbortSignal;
}

const maxRedirects = 5;
const redirects = new Set([301, 302, 303, 307, 308]);
const decoders = { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress };

/** The resolver of the operating system. */
export const systemResolver: Resolver = async (hostname) =>
  (await lookup(hostname, { all: true })).map(({ address, family }) => ({ address, family: family === 6 ? 6 : 4 }));

/** Throws BlockedTargetError, the signal's reason, or a network error. */
export async function fetchPage(address: string, options: GetOptions): Promise<WebAnswer> {
  let next = address;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const target = await abortable(findTarget(next, options.policy, options.resolve), options.signal);
    const response = await getOnce(target, options.signal);
    const status = response.statusCode ?? 0;
    const { location } = response.headers;
    if (!redirects.has(status) || location === undefined) {
      const { body, cut } = await readBody(response, options.maxBytes);
      return { url: target.url.href, status, contentType: response.headers["content-type"] ?? "", body, cut };
    }
    response.destroy();
    if (!URL.canParse(location, target.url.href)) throw new BlockedTargetError("The page redirects to an invalid URL.");
    const following = new URL(location, target.url.href);
    if (options.sameHost && !isSameHost(target.url, following)) {
      throw new BlockedTargetError(
        `The page redirects to another host; in a turn that contains untrusted content such redirects are not followed. The target is ${following.href.slice(0, 2_000)}; fetch it with a separate call if you need it.`,
      );
    }
    next = following.href;
  }
  throw new BlockedTargetError(`The page redirects more than ${maxRedirects} times.`);
}

/** The same scheme, host and port, or the same host name from HTTP to HTTPS on default ports. */
function isSameHost(from: URL, to: URL): boolean {
  if (to.origin === from.origin) return true;
  const upgrades = from.protocol === "http:" && to.protocol === "https:" && from.port === "" && to.port === "";
  return upgrades && to.hostname === from.hostname;
}

function getOnce({ url, address }: Target, signal: AbortSignal): Promise<IncomingMessage> {
  const { request, Agent } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url.href,
      {
        // The shared agent may be configured to use a proxy.
        agent: new Agent(),
        // Connects only to the checked address; the name serves for the certificate and the Host header.
        lookup: (_name, wanted, found) =>
          wanted.all === true ? found(null, [address]) : found(null, address.address, address.family),
        headers: {
          accept: "text/html,application/xhtml+xml,application/json,text/*;q=0.9,*/*;q=0.5",
          "accept-encoding": "gzip, deflate, br",
          "user-agent": "Mozilla/5.0 (compatible; Parley)",
        },
        signal,
      },
      resolve,
    );
    outgoing.once("error", reject);
    outgoing.end();
  });
}

async function readBody(response: IncomingMessage, maxBytes: number): Promise<{ body: Buffer; cut: boolean }> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of decoded(response)) {
      if (!Buffer.isBuffer(chunk)) continue;
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBytes) break;
    }
  } finally {
    response.destroy();
  }
  return { body: Buffer.concat(chunks).subarray(0, maxBytes), cut: bytes > maxBytes };
}

/** Throws BlockedTargetError for an unsupported content encoding. */
function decoded(response: IncomingMessage): Readable {
  const encoding = (response.headers["content-encoding"] ?? "identity").toLowerCase();
  if (encoding === "identity" || encoding === "") return response;
  const decoder = Object.entries(decoders).find(([name]) => name === encoding)?.[1]();
  if (decoder === undefined)
    throw new BlockedTargetError(`The page has the unsupported content encoding ${encoding.slice(0, 40)}.`);
  // The reader of the decoder receives the errors.
  return pipeline(response, decoder, () => undefined);
}
