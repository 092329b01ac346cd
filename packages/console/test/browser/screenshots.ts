// Pictures of every view. `node … screenshots.ts <folder> [<name>,…]`: all views, or those of the names, light and dark, at 390, 1280 and
// 3840 pixels, to look at them; without a folder: the few that docs/console.md shows.
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Cleanup } from "@parley/testing";
import type { Browser, Page } from "playwright-core";
import { startDemo, type Demo } from "./demo.ts";
import { smallPng } from "./small-png.ts";
import { findChromium, signInLink, startBrowser } from "./support.ts";

const folder = process.argv[2];
const only = process.argv[3]?.split(",");
const docs = fileURLToPath(new URL("../../../../docs/images/", import.meta.url));

interface Shot {
  name: string;
  address: string;
  /** A selector that is there when the view is complete. */
  ready: string;
  /** In docs/console.md. */
  inDocs?: true;
  before?: (page: Page) => Promise<void>;
}

function shotsOf({ sessions, turn }: Demo): Shot[] {
  return [
    { name: "chat", address: `#/chat/${sessions.main}`, ready: ".turn-end", inDocs: true },
    { name: "approval", address: `#/chat/${sessions.waiting}`, ready: ".approval", inDocs: true },
    { name: "chat-question", address: `#/chat/${sessions.asking}`, ready: ".ask" },
    { name: "subagents", address: `#/chat/${sessions.agents}`, ready: ".turn-end", inDocs: true },
    { name: "sessions", address: "#/sessions", ready: ".session-line" },
    { name: "session", address: `#/session/${sessions.main}`, ready: ".facts" },
    { name: "approvals", address: "#/approvals", ready: ".approval" },
    { name: "cluster", address: "#/cluster", ready: "tbody tr:nth-child(4)" },
    { name: "turn", address: `#/turn/${turn}`, ready: ".waterfall", inDocs: true },
    {
      name: "request",
      address: `#/turn/${turn}`,
      ready: ".sent-message",
      inDocs: true,
      before: async (page) => {
        await page.locator(".folds summary").first().click();
        await page
          .getByText(/^Messages: /)
          .first()
          .click();
        await page.locator(".folds").scrollIntoViewIfNeeded();
      },
    },
    { name: "usage", address: "#/usage", ready: "canvas", inDocs: true },
    { name: "schedules", address: "#/schedules", ready: ".card" },
    { name: "memory", address: "#/documents/AGENTS.md", ready: ".split-detail h1" },
    { name: "tools", address: "#/tools", ready: "code" },
    { name: "people", address: "#/people", ready: ".lines" },
    { name: "channels", address: "#/channels", ready: ".card", inDocs: true },
    { name: "settings", address: "#/settings", ready: "tbody tr:nth-child(9)" },
    {
      name: "palette",
      address: "#/sessions",
      ready: ".palette-list li",
      before: (page) => page.keyboard.press("Control+k"),
    },
    { name: "keys", address: "#/sessions", ready: ".key-list", before: (page) => page.keyboard.press("?") },
  ];
}

async function open(browser: Browser, demo: Demo, scheme: "light" | "dark", width: number): Promise<Page> {
  const height = { 390: 844, 1280: 800 }[width] ?? 2160;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  const page = await context.newPage();
  if (folder !== undefined) {
    await page.goto(demo.cluster.httpUrl);
    await page.getByLabel("Token").waitFor();
    await page.screenshot({ path: `${folder}/sign-in-${width}-${scheme}.png` });
  }
  await page.goto("about:blank");
  await page.goto(await signInLink(demo.cluster.httpUrl, demo.cluster.token));
  await page.locator(".content").waitFor();
  return page;
}

async function shoot(page: Page, demo: Demo, { address, ready, before }: Shot, path: string): Promise<void> {
  await page.goto(`${demo.cluster.httpUrl}/${address}`);
  await page.reload();
  await page.locator(".content").waitFor();
  await before?.(page);
  await page.locator(ready).first().waitFor();
  await page.evaluate(() => document.fonts.ready);
  // Pictures and charts that load after the content.
  await page.waitForLoadState("networkidle");
  const png = await page.screenshot();
  writeFileSync(path, folder === undefined ? await smallPng(browser, png) : png);
}

await using cleanup = new Cleanup();
const demo = await startDemo(cleanup);
const browser = await startBrowser(findChromium() ?? "chromium");
cleanup.add(() => browser.close());
const target = folder ?? docs;
mkdirSync(target, { recursive: true });
for (const scheme of folder === undefined ? (["light"] as const) : (["light", "dark"] as const)) {
  for (const width of folder === undefined ? [1280] : [1280, 390, 3840]) {
    const page = await open(browser, demo, scheme, width);
    for (const shot of shotsOf(demo)) {
      if (folder === undefined ? shot.inDocs !== true : only !== undefined && !only.includes(shot.name)) continue;
      const name = folder === undefined ? `console-${shot.name}` : `${shot.name}-${width}-${scheme}`;
      await shoot(page, demo, shot, `${target}/${name}.png`);
    }
    await page.context().close();
  }
}
