// Serves the documentation below /docs/, offline: its pages load nothing from elsewhere. The console's build renders them; the site of
// `npm run docs:site`, where it is built, also has a search.
import { existsSync, readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { FastifyInstance, FastifyReply } from "fastify";
import { HttpError } from "../errors.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".woff2": "font/woff2",
};

/** Colours of code are style attributes. */
const policy =
  "default-src 'self'; style-src 'self' 'unsafe-inline'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/** VitePress names files by their content, except pages. */
const hashed = /\.[\w-]{8}\.(?:lean\.)?(?:js|css|woff2|svg|png)$/;
const firstPage = "getting-started";

/** The site of `npm run docs:site` if it is built, otherwise the pages in the built console. */
export function documentationFolder(): string {
  const page = import.meta.resolve("@parley/console/index.html");
  const site = fileURLToPath(new URL("../docs-dist/", page));
  return existsSync(site) ? site : fileURLToPath(new URL("docs/", page));
}

/** Registers `/docs/`. The pages contain no data, so they need no token. `folder`: the built pages; it may be missing. */
export function documentationRoutes(app: FastifyInstance, folder: string): void {
  const config = { open: true };
  // Only these names are served, so a path cannot leave the folder.
  const names = new Set(
    existsSync(folder)
      ? readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => name.replaceAll("\\", "/"))
      : [],
  );
  app.get("/docs", { config }, (_request, reply) => reply.redirect(`/docs/${firstPage}`));
  app.get<{ Params: { "*": string } }>("/docs/*", { config }, async ({ params: { "*": path } }, reply) => {
    const name = [path, `${path}.html`, ...(path === "" ? ["index.html", `${firstPage}.html`] : [])].find(
      (each) => names.has(each) && types[extname(each)] !== undefined,
    );
    if (name !== undefined) return send(reply, name, await readFile(join(folder, name)));
    const text =
      names.size === 0
        ? "the documentation is not built: `npm run build` in the folder of Parley, then restart"
        : "there is no such page";
    throw new HttpError(404, "not_found", text);
  });
}

function send(reply: FastifyReply, name: string, content: Buffer) {
  return reply
    .headers({
      "cache-control": hashed.test(name) ? "public, max-age=31536000, immutable" : "no-cache",
      "content-security-policy": policy,
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
    })
    .type(types[extname(name)] ?? "")
    .send(content);
}
