// The text of a delivery for the model, which treats it as untrusted content: a description of the event, the body with indentation, or
// the body as it is. Pure.
import type { WebhookAccount, WebhookSigner } from "@parley/contracts";
import { parseJson } from "@parley/kit";
import { alertmanagerText } from "./alertmanager.ts";
import { Fields, lines, words } from "./fields.ts";
import { githubText } from "./github.ts";
import { gitlabText } from "./gitlab.ts";
import { sentryText } from "./sentry.ts";

type Header = (name: string) => string | undefined;

export function messageText(
  { signer, format }: Pick<WebhookAccount, "signer" | "format">,
  body: string,
  header: Header,
) {
  if (format === "text") return body;
  return (format === "event" ? eventText(signer, body, header) : null) ?? indented(body);
}

/** The description of an event of a known sender; null for others. */
export function eventText(signer: WebhookSigner, body: string, header: Header): string | null {
  const parsed = parseJson(body);
  if (parsed === undefined) return null;
  const fields = new Fields(parsed);
  switch (signer) {
    case "github":
      return githubText(header("x-github-event") ?? "", fields);
    case "gitlab":
      return gitlabText(fields);
    case "sentry":
      return sentryText(header("sentry-hook-resource") ?? "", fields);
    case "alertmanager":
      return alertmanagerText(fields);
    case "standard": {
      const type = fields.line("type");
      return type === "" ? null : lines(words("Event:", type, fields.line("timestamp")), indented(body));
    }
    default:
      return null;
  }
}

/** Formats JSON with indentation and returns other text unchanged. Numbers keep every digit. */
function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body, exactNumber), null, 2);
  } catch {
    return body;
  }
}

/** Ids are often numbers that a double cannot represent. */
function exactNumber(this: unknown, _key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === "number" && source !== undefined && String(value) !== source ? rawJson(source) : value;
}

function rawJson(source: string): unknown {
  const json: { rawJSON?: (text: string) => unknown } = JSON as never;
  return json.rawJSON?.(source) ?? Number(source);
}
