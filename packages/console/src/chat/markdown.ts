// Converts Markdown to safe HTML. Raw HTML is shown as text and images become links, so that the page loads nothing from other servers. The
// parser's output is sanitized too: an attack must pass both the parser and the sanitizer.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";

const allowedTags =
  "p br strong em del code pre blockquote hr a span ul ol li h1 h2 h3 h4 h5 h6 table thead tbody tr th td".split(" ");
const allowedAttributes = ["href", "title", "class", "align", "start", "target", "rel"];

/** Characters that change the direction of the text around them, or are invisible. */
const hiddenCharacters = /[\u202A-\u202E\u2066-\u2069\u200E\u200F\u061C\u200B\u2060\uFEFF\u00AD]/g;

/** Replaces characters that could hide or reorder text by their code points, such as ⟨U+202E⟩. */
export function visible(text: string): string {
  return text.replace(
    hiddenCharacters,
    (character) => `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`,
  );
}

function escapeHtml(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** The URL if its scheme is http, https or mailto, which run no script in the page; else null. */
function safeUrl(href: string): string | null {
  const trimmed = href.trim();
  return /^(?:https?:\/\/|mailto:)/i.test(trimmed) && URL.canParse(trimmed) ? trimmed : null;
}

function link(href: string, contentHtml: string): string {
  const url = safeUrl(href);
  if (url === null) return `<span class="dead-link">${contentHtml}</span>`;
  return `<a href="${escapeHtml(url)}" target="_blank" rel="noopener noreferrer nofollow">${contentHtml}</a>`;
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

/** Parses a text into its top-level blocks: paragraphs, lists, tables, code. */
export function blocks(text: string): Token[] {
  return marked.lexer(visible(text)).filter(({ type }) => type !== "space");
}

let isSanitizerConfigured = false;

/** Renders one block as sanitized HTML. Needs a DOM. */
export function blockHtml(block: Token): string {
  if (!isSanitizerConfigured) {
    // Set once, because DOMPurify parses a configuration that is an argument of each call every time. Not set when this module is loaded,
    // because tests load it without a DOM.
    DOMPurify.setConfig({
      ALLOWED_TAGS: allowedTags,
      ALLOWED_ATTR: allowedAttributes,
      ALLOW_DATA_ATTR: false,
      ALLOW_ARIA_ATTR: false,
      ADD_URI_SAFE_ATTR: ["target", "rel"],
    });
    isSanitizerConfigured = true;
  }
  return DOMPurify.sanitize(marked.parser([block]));
}
