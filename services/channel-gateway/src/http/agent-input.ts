// Requests of OpenAI clients as input: instructions, earlier messages and files.
import { attachmentName, maxAttachments } from "@parley/contracts";
import { instructionsText, type AuthorizedInput } from "../ingress/authorized-input.ts";
import { keep } from "./attachments.ts";
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";
import { historyText, type AgentRequest } from "./openai-input.ts";

/** Base64 takes four bytes for three; the rest of the request is text. */
const textBytes = 1024 * 1024;

/** The body limit of a route whose requests contain files. */
export function bodyLimitFor({ settings }: Pick<HttpDeps, "settings">): number {
  return Math.ceil((settings.attachments.max_bytes * 4) / 3) + textBytes;
}

/**
 * A request of an OpenAI client as input: the files are stored first. Instructions are always sent; earlier messages only if the request
 * begins a session, because a named conversation has its own history.
 */
export async function agentInput(
  deps: Pick<HttpDeps, "bus">,
  input: AuthorizedInput,
  request: AgentRequest,
  withHistory: boolean,
): Promise<AuthorizedInput> {
  const history = withHistory ? request.history : [];
  const instructions = request.instructions.filter((text) => text.trim() !== "").join("\n\n");
  const before = [
    ...(instructions === "" ? [] : [instructionsText(instructions)]),
    ...(history.length === 0 ? [] : [historyText(history)]),
  ];
  const files = [...history.flatMap((message) => message.files), ...request.files];
  if (files.length > maxAttachments) {
    throw new HttpError(400, "unsupported_value", `a request can have at most ${maxAttachments} files`);
  }
  const attachments = await Promise.all(
    files.map(async ({ name, content }) => ({ ...(await keep(deps, content)), name: attachmentName(name, "file") })),
  );
  return { ...input, before, attachments };
}
