// Extracts the main content of HTML as Markdown or plain text. Pure, but slow on large or hostile pages: call it only in a
// separate thread.
import { gfm } from "@joplin/turndown-plugin-gfm";
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import Turndown from "turndown";

export interface ReadingJob {
  html: string;
  /** The page's URL, to resolve relative links. */
  url: string;
  as: "markdown" | "text";
}

export interface Article {
  title: string;
  text: string;
}

const noContent = "script, style, noscript, template, iframe, object, embed, svg, canvas, form, dialog";
const aroundContent = "nav, header, footer, aside";
/** Minimum share of the article in the page's text; below it the page is a list, an index or a front page. */
const leastShare = 0.2;

export function readHtml({ html, url, as }: ReadingJob): Article {
  // The parser adds neither a missing <html> nor a missing <body>, which HTML lets authors omit.
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html>${html}</html>`);
  addBody(document);
  for (const element of document.querySelectorAll(noContent)) element.remove();
  for (const [selector, attribute] of [
    ["a[href]", "href"],
    ["img[src]", "src"],
  ] as const) {
    for (const element of document.querySelectorAll(selector)) absolute(element, attribute, url);
  }
  const pageTitle = document.querySelector("title")?.textContent ?? "";
  const whole = document.documentElement;
  const wholeText = plain(whole?.textContent ?? "");
  const copy = parseHTML(document.toString()).document;
  const article = new Readability(copy).parse();
  const articleText = plain(article?.textContent ?? "");
  const title = plain(article?.title || pageTitle).slice(0, 300);
  if (articleText.length >= wholeText.length * leastShare && articleText !== "") {
    return { title, text: as === "text" ? articleText : toMarkdown(article?.content ?? "") };
  }
  if (as === "text") return { title, text: wholeText };
  for (const element of document.querySelectorAll(`head, ${aroundContent}`)) element.remove();
  return { title, text: toMarkdown(whole?.innerHTML ?? "") };
}

function addBody(document: Document): void {
  const root = document.documentElement;
  if (root === null || document.querySelector("body, frameset") !== null) return;
  const body = document.createElement("body");
  body.append(...[...root.childNodes].filter(({ nodeName }) => nodeName.toLowerCase() !== "head"));
  root.append(body);
}

function toMarkdown(html: string): string {
  const turndown = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-", hr: "---" });
  turndown.use(gfm);
  return turndown.turndown(html).trim();
}

/** Makes a link absolute; removes targets that are not http or https. */
function absolute(element: Element, attribute: string, base: string): void {
  const value = element.getAttribute(attribute) ?? "";
  const whole = URL.canParse(value, base) ? new URL(value, base) : undefined;
  if (whole?.protocol === "http:" || whole?.protocol === "https:") element.setAttribute(attribute, whole.href);
  else element.removeAttribute(attribute);
}

function plain(text: string): string {
  return text
    .replaceAll(/[^\S\n]+/g, " ")
    .replaceAll(/ ?\n ?/g, "\n")
    .replaceAll(/\n{3,}/g, "\n\n")
    .trim();
}
