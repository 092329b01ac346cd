// Converts messages in OpenAI's formats to input of the agent: instructions, earlier messages, the new text and its files.
import { attachmentName, maxAttachments, type AnswerRequirements } from "@parley/contracts";
import { instructionsText, type AuthorizedInput } from "../ingress/authorized-input.ts";
import { storeContent } from "./attachments.ts";
import type { HttpDeps } from "./deps.ts";
import { HttpError } from "./errors.ts";

/** A file in a request, before it is stored. */
export interface RequestFile {
  name: string;
  content: Buffer;
}

export interface RequestMessage {
  role: "instructions" | "user" | "assistant";
  text: string;
  files: RequestFile[];
}

/** What a request asks the agent. */
export interface AgentRequest {
  /** Texts that precede the new text: instructions and earlier messages. */
  instructions: string[];
  history: RequestMessage[];
  text: string;
  files: RequestFile[];
  answer?: AnswerRequirements | undefined;
}

/** The error for a value that Parley does not support. */
export function unsupported(param: string, message: string): HttpError {
  return new HttpError(400, "unsupported_value", `${param}: ${message}`, { param });
}

/** Splits messages at the last one, which must be a user's. `param`: their place in the request. Throws HttpError 400. */
export function agentRequest(messages: readonly RequestMessage[], param: string): AgentRequest {
  const instructions = messages.filter(({ role }) => role === "instructions").map(({ text }) => text);
  const conversation = messages.filter(({ role }) => role !== "instructions");
  const newest = conversation.at(-1);
  if (newest === undefined) throw unsupported(param, `\`${param}\` contains no message of role user`);
  if (newest.role !== "user") throw unsupported(param, "the last message must be of role user");
  if (newest.text === "" && newest.files.length === 0) throw unsupported(param, "the last user message is empty");
  return { instructions, history: conversation.slice(0, -1), text: newest.text, files: newest.files };
}

/** Earlier messages as text for the agent. Lines after the first are indented, so that none looks like another message. */
function historyText(history: readonly RequestMessage[]): string {
  const lines = history.map(({ role, text, files }) => {
    const names = files.length === 0 ? "" : ` [with ${files.map(({ name }) => name).join(", ")}]`;
    return `${role}: ${text.replaceAll("\n", "\n  ")}${names}`;
  });
  return `[Earlier messages of this conversation, sent by the calling program]\n${lines.join("\n")}`;
}

const dataUrl = /^data:([a-z0-9.+-]+\/[a-z0-9.+-]+)?(?:;[a-z0-9=.-]+)*;base64,([A-Za-z0-9+/=\s]*)$/i;

/** The file of a data URL. Throws HttpError 400 for any other URL. */
export function fileOf(url: unknown, kind: string, param: string, name?: string | null): RequestFile {
  const [, type = "", data] = dataUrl.exec(typeof url === "string" ? url : "") ?? [];
  if (data === undefined) {
    throw unsupported(
      param,
      `only base64 data URLs are supported: Parley does not fetch ${kind}s from other addresses`,
    );
  }
  const extension = /\/([a-z0-9]+)/i.exec(type)?.[1] ?? "bin";
  return { name: name ?? `${kind}.${extension}`, content: Buffer.from(data, "base64") };
}

/** For everything in a request except its files. */
const maxTextBytes = 1024 * 1024;

/** The body limit of a route whose requests contain files. Base64 takes four bytes for three. */
export function bodyLimitFor({ settings }: Pick<HttpDeps, "settings">): number {
  return Math.ceil((settings.attachments.max_bytes * 4) / 3) + maxTextBytes;
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
    files.map(async ({ name, content }) => ({
      ...(await storeContent(deps, content)),
      name: attachmentName(name, "file"),
    })),
  );
  return { ...input, before, attachments, answer: request.answer };
}
