// Slack's text: what a person wrote as plain text, and texts of the agent that must not notify people by accident. Pure.

/** Control sequences that notify somebody: `<!channel>`, `<@U…>`, `<!subteam^S…>`, and links to channels. */
const notifying = /<(?=!(?:channel|here|everyone|group|subteam\^|date\^)|@[UWB][A-Z0-9]|#[CG][A-Z0-9])/gi;
const wordJoiner = "\u2060";

/** The text without effect on people and channels that it names; it looks the same. */
export function withoutNotifications(text: string): string {
  return text.replaceAll(notifying, `<${wordJoiner}`);
}

/** Text of mrkdwn, for parameters without Markdown. */
export function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** What a person wrote: control sequences as names and links, entities as characters. */
export function readableText(source: string, nameOf: (id: string) => string | undefined): string {
  return source
    .split(/(<[^<>\n]+>)/)
    .map((piece, index) => unescaped(index % 2 === 1 ? readable(piece.slice(1, -1), nameOf) : piece))
    .join("");
}

function readable(sequence: string, nameOf: (id: string) => string | undefined): string {
  const [target = "", label = ""] = sequence.split("|", 2);
  if (target.startsWith("@")) return `@${nameOf(target.slice(1)) ?? (label === "" ? target.slice(1) : label)}`;
  if (target.startsWith("#")) return `#${label === "" ? target.slice(1) : label}`;
  if (target.startsWith("!")) return label === "" ? `@${target.slice(1)}` : label;
  const url = target.replace(/^mailto:/, "");
  if (label === "" || label === url || `http://${label}` === url || `https://${label}` === url) {
    return label === "" ? url : label;
  }
  return `${label} (${url})`;
}

function unescaped(text: string): string {
  return text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
}

/** Removes the mention of the agent at the beginning of a text. */
export function withoutMention(source: string, userId: string): string {
  const mention = `<@${userId}`;
  const start = source.trimStart();
  if (!start.startsWith(mention)) return source;
  return start.slice(start.indexOf(">") + 1).replace(/^[\s,:]+/, "");
}

/** The ids of people whom a text mentions. */
export function mentionedIds(source: string): string[] {
  return [...source.matchAll(/<@([UW][A-Z0-9]{1,30})(?:\|[^<>]*)?>/g)].map(([, id = ""]) => id);
}
