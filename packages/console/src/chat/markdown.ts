// Markdown to safe HTML. Raw HTML in the text is shown as text, pictures become links, and nothing is loaded from elsewhere. What the
// parser produces is sanitized as well, so that a mistake in one of the two does not suffice.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";

const allowedTags =
  "p br strong em del code pre blockquote hr a span ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split(" ");
const allowedAttributes = ["href", "title", "class", "align", "start", "target", "rel"];

/** Characters that change the direction of the text around them, or are invisible. */
const hiddenCharacters = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C\u200B\u2060\uFEFF\u00AD]/g;

/** Replaces characters that could hide or reorder text by a visible name. */
export function visible(text: string): string {
  return text.replace(
    hiddenCharacters,
    (each) => `⟨U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

function escapeHtml(text: string): string {
  const names: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (each) => names[each] ?? each);
}

/** The address if a click on it is harmless, else null. */
function safeAddress(href: string): string | null {
  const trimmed = href.trim();
  return /^(?:https?:\/\/|mailto:)/i.test(trimmed) && URL.canParse(trimmed) ? trimmed : null;
}

function link(href: string, inner: string): string {
  const address = safeAddress(href);
  if (address === null) return `<span class="dead-link">${inner}</span>`;
  return `<a href="${escapeHtml(address)}" target="_blank" rel="noopener noreferrer nofollow">${inner}</a>`;
}

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
    image: ({ href, text }: Tokens.Image) => link(href, `picture: ${escapeHtml(text === "" ? href : text)}`),
    link({ href, tokens }: Tokens.Link) {
      return link(href, this.parser.parseInline(tokens));
    },
    checkbox: ({ checked }: Tokens.Checkbox) => (checked ? "☑ " : "☐ "),
  },
});

/** The blocks of a text: paragraphs, lists, tables, code. */
export function blocks(text: string): Token[] {
  return marked.lexer(visible(text)).filter(({ type }) => type !== "space");
}

let purifies = false;

/** Safe HTML of one block. */
export function blockHtml(block: Token): string {
  if (!purifies) {
    // Once: as an argument of each call it would be parsed each time. Not at the start, because tests without DOM load this file.
    DOMPurify.setConfig({
      ALLOWED_TAGS: allowedTags,
      ALLOWED_ATTR: allowedAttributes,
      ALLOW_DATA_ATTR: false,
      ALLOW_ARIA_ATTR: false,
      ADD_URI_SAFE_ATTR: ["target", "rel"],
    });
    purifies = true;
  }
  return DOMPurify.sanitize(marked.parser([block]));
}
