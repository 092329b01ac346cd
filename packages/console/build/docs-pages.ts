// The pages of docs/ as plain HTML, part of the console's build: the gateway serves them below /docs/ on every machine, offline and
// without scripts. `npm run docs:site` builds the same pages with VitePress, which adds a search; the gateway prefers those.
import { globSync, readFileSync } from "node:fs";
import { dirname, join, posix } from "node:path";
import { pathToFileURL } from "node:url";
import hljs from "highlight.js/lib/common";
import { Marked, type Tokens } from "marked";
import type { Plugin } from "vite";

interface MenuEntry {
  text: string;
  link: string;
  items?: readonly MenuEntry[];
}

/** The menu of the documentation site. */
type Menu = readonly { text: string; items: readonly MenuEntry[] }[];

/** A file of the documentation; `name` is its path below /docs/. */
export interface DocumentationFile {
  name: string;
  content: string | Uint8Array;
}

/** Renders all pages of the repository at `root`, with their pictures. */
export async function renderDocumentation(root: string): Promise<DocumentationFile[]> {
  const docs = join(root, "docs");
  const read = (path: string) => readFileSync(join(docs, path), "utf8");
  const sources = new Map(globSync("**/*.md", { cwd: docs }).map((path) => [path.replace(/\.md$/, ""), read(path)]));
  sources.set("security", readFileSync(join(root, "SECURITY.md"), "utf8").replaceAll("](docs/", "]("));
  const menu = await readMenu(root);
  const pages = [...sources].map(([name, text]) => ({
    name: `${name}.html`,
    content: page(name, text, menu, new Set(sources.keys())),
  }));
  const pictures = globSync("images/*.png", { cwd: docs }).map((name) => ({
    name,
    content: readFileSync(join(docs, name)),
  }));
  const style = readFileSync(join(import.meta.dirname, "docs-pages.css"), "utf8");
  return [...pages, ...pictures, { name: "style.css", content: style }];
}

async function readMenu(root: string): Promise<Menu> {
  const file = pathToFileURL(join(root, "infra/docs-site/.vitepress/config.mjs")).href;
  const { default: config } = (await import(file)) as { default: { themeConfig: { sidebar: Menu } } };
  return config.themeConfig.sidebar;
}

function page(name: string, text: string, menu: Menu, names: ReadonlySet<string>): string {
  const [, title = name] = /^# (.*)$/m.exec(text) ?? [];
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} · Parley</title>
<link rel="stylesheet" href="/docs/style.css">
</head>
<body>
<header><a href="/docs/getting-started">Parley documentation</a> <a class="to-menu" href="#menu">Contents</a> <a href="/">Console</a></header>
<main>${renderer(name, names).parse(text, { async: false })}</main>
<nav id="menu" aria-label="Contents">${menu.map((group) => `<h2>${escapeHtml(group.text)}</h2>${list(group.items, name)}`).join("")}</nav>
</body>
</html>
`;
}

function list(entries: readonly MenuEntry[], current: string): string {
  const item = ({ text, link, items = [] }: MenuEntry) => {
    const mark = link === `/${current}` ? ' aria-current="page"' : "";
    return `<li><a href="/docs${link}"${mark}>${escapeHtml(text)}</a>${items.length === 0 ? "" : list(items, current)}</li>`;
  };
  return `<ul>${entries.map(item).join("")}</ul>`;
}

/** Raw tags in texts, such as `<name>`, are text. */
function renderer(name: string, names: ReadonlySet<string>): Marked {
  const used = new Map<string, number>();
  return new Marked({
    gfm: true,
    renderer: {
      html: ({ text }: Tokens.HTML | Tokens.Tag) => escapeHtml(text),
      heading({ tokens, depth, text }: Tokens.Heading) {
        return `<h${depth} id="${escapeHtml(uniqueId(text, used))}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const address = addressOf(href, name, names);
        const inner = this.parser.parseInline(tokens);
        return address === null ? inner : `<a href="${escapeHtml(address)}">${inner}</a>`;
      },
      image: ({ href, text }: Tokens.Image) =>
        `<img src="/docs/${escapeHtml(posix.join(dirname(name), href))}" alt="${escapeHtml(text)}">`,
      table({ header, rows }: Tokens.Table) {
        const cells = (row: readonly Tokens.TableCell[], tag: string) =>
          `<tr>${row.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join("")}</tr>`;
        const body = rows.map((row) => cells(row, "td")).join("");
        return `<div class="scroll" role="region" aria-label="Table" tabindex="0"><table><thead>${cells(header, "th")}</thead><tbody>${body}</tbody></table></div>\n`;
      },
      code({ text, lang = "" }: Tokens.Code) {
        const known = hljs.getLanguage(lang) !== undefined;
        const inner = known ? hljs.highlight(text, { language: lang }).value : escapeHtml(text);
        return `<pre class="scroll" tabindex="0"><code>${inner}</code></pre>\n`;
      },
    },
  });
}

/** The address of a link on a page; null: it leads to a file of the repository that is no page. */
function addressOf(href: string, name: string, names: ReadonlySet<string>): string | null {
  if (/^(?:https?:|mailto:|#)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const wanted = posix.join(dirname(name), path).replace(/\.md$/, "");
  const target = wanted === "../SECURITY" ? "security" : wanted;
  return names.has(target) ? `/docs/${target}${anchor === undefined ? "" : `#${anchor}`}` : null;
}

/** The id of a heading, as GitHub forms it. */
function uniqueId(text: string, used: Map<string, number>): string {
  const id = text
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
  const count = used.get(id) ?? 0;
  used.set(id, count + 1);
  return count === 0 ? id : `${id}-${count}`;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** Adds the documentation of the repository at `root` to the build, below `docs/`. */
export function documentation(root: string): Plugin {
  return {
    name: "parley-documentation",
    async generateBundle() {
      for (const { name, content } of await renderDocumentation(root)) {
        this.emitFile({ type: "asset", fileName: `docs/${name}`, source: content });
      }
    },
  };
}
