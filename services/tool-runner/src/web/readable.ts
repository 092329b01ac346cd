// HTML to what a reader wants of it: the article as Markdown, or as plain text. Pure, slow on large or hostile pages, and
// therefore only called in a thread of its own.
import { gfm } from "@joplin/turndown-plugin-gfm";
import { Readability } from "@mozilla/readability";
import { parseHTML } from "linkedom";
import Turndown from "turndown";

export interface ReadingJob {
  html: string;
  /** Of the page: relative links become whole ones. */
  url: string;
  as: "markdown" | "text";
}

export interface Reading {
  title: string;
  text: string;
}

const noContent = "script, style, noscript, template, iframe, object, embed, svg, canvas, form, dialog";
const aroundContent = "nav, header, footer, aside";
/** An article much shorter than its page was not the page's point: a list, an index, a front page. */
const leastShare = 0.2;

export function readHtml({ html, url, as }: ReadingJob): Reading {
  // A page may leave out what every page has; the parser does not put it in.
  const { document } = parseHTML(/<html[\s>]/i.test(html) ? html : `<html>${html}</html>`);
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
  const title = plain(article?.title ?? pageTitle).slice(0, 300);
  if (articleText.length >= wholeText.length * leastShare && articleText !== "") {
    return { title, text: as === "text" ? articleText : toMarkdown(article?.content ?? "") };
  }
  if (as === "text") return { title, text: wholeText };
  for (const element of document.querySelectorAll(`head, ${aroundContent}`)) element.remove();
  return { title, text: toMarkdown(whole?.innerHTML ?? "") };
}

function toMarkdown(html: string): string {
  const turndown = new Turndown({ headingStyle: "atx", codeBlockStyle: "fenced", bulletListMarker: "-", hr: "---" });
  turndown.use(gfm);
  return turndown.turndown(html).trim();
}

/** Links that lead nowhere a reader could go lose their target. */
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
