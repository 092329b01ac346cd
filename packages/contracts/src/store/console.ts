// Sign-ins of the web console: one-time codes and browser sessions. The store holds only hashes of both.
import { z } from "zod";
import { Empty, storeRequest } from "./shared.ts";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** The beginning of the hash of the API token that the sign-in came from: without that token the sign-in is void. */
const holder = z.string().min(1).max(64);

export const consoleCodePut = storeRequest({
  subject: "store.console.code_put",
  clients: ["channel-gateway"],
  doc: "Store a one-time code that signs a browser in to the console.",
  input: z.object({ sha256, holder, ttlMs: z.number().int().positive() }),
  output: Empty,
});

export const consoleSessionOpen = storeRequest({
  subject: "store.console.session_open",
  clients: ["channel-gateway"],
  doc: "Open a browser session: of the holder of a token, or with a one-time code, which is used up. Null: the code is unknown, expired or used. A repeated request returns the same session.",
  input: z.object({
    sha256,
    ttlMs: z.number().int().positive(),
    from: z.union([z.object({ holder }), z.object({ codeSha256: sha256 })]),
  }),
  output: z.object({ session: z.object({ holder, expiresAt: z.string() }).nullable() }),
});

export const consoleSessionGet = storeRequest({
  subject: "store.console.session_get",
  clients: ["channel-gateway"],
  doc: "Get a browser session by the hash of its cookie; null: unknown or expired.",
  input: z.object({ sha256 }),
  output: consoleSessionOpen.output,
});

export const consoleSessionClose = storeRequest({
  subject: "store.console.session_close",
  clients: ["channel-gateway"],
  doc: "End a browser session.",
  input: z.object({ sha256 }),
  output: Empty,
});
