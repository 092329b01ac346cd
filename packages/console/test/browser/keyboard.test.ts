// A cluster without any work, walked by keyboard alone in a real browser: every view is reachable, every stop is visible, and what is
// empty says what to do next. One cluster and one page; the tests run in order.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Cleanup, startTestCluster, type TestCluster } from "@parley/testing";
import type { Page } from "playwright-core";
import { findChromium, goByKeys, signInLink, startBrowser } from "./support.ts";

const chromium = findChromium();
const skip = chromium === null ? "Chromium is not installed (apt install chromium, or PARLEY_CHROMIUM)" : false;

/** The title of each view in the navigation, its key after `g`, and what it says on an empty cluster. */
const views: readonly (readonly [string, string, RegExp])[] = [
  ["Chat", "c", /Start a chat/],
  ["Sessions", "s", /Start a chat, or choose other filters/],
  ["Approvals", "a", /calls that need your consent appear here/],
  ["Cluster", "l", /No channel is configured\. Add an account/],
  ["Usage", "u", /Choose a longer period, or write something in the chat/],
  ["Schedules", "j", /Create one here, ask the agent for it, or use/],
  ["Memory", "m", /Write AGENTS\.md to instruct it/],
  ["Tools", "t", /Add one below \[mcp\.servers\.<name>\] in parley\.toml/],
  ["People", "p", /need no pairing/],
  ["Channels", "h", /Choose “Add an account”/],
  ["Settings", "e", /Change parley\.toml, check it with npx parley config check/],
];

describe("the console by keyboard", { skip }, () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let page: Page;

  before(async () => {
    cluster = await startTestCluster(cleanup, { processes: [] });
    const browser = await startBrowser(chromium ?? "");
    cleanup.add(() => browser.close());
    page = await browser.newPage({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
    await page.goto(await signInLink(cluster.httpUrl, cluster.token));
    await page.getByRole("button", { name: "Start a chat" }).waitFor();
  });
  after(() => cleanup[Symbol.asyncDispose]());

  const main = () => page.getByRole("main");

  /** The element with the focus: its name, and whether it can be seen with a ring around it. */
  const focused = () =>
    page.evaluate(() => {
      const element = document.activeElement;
      if (!(element instanceof HTMLElement) || element === document.body) return null;
      const { outlineStyle, outlineWidth, borderColor, boxShadow } = getComputedStyle(element);
      const box = element.getBoundingClientRect();
      return {
        name: (element.getAttribute("aria-label") ?? element.textContent ?? "").trim().slice(0, 40),
        isContent: element.closest("main") !== null,
        isVisible: box.width > 0 && box.height > 0 && box.right > 0 && box.bottom > 0,
        hasRing:
          (outlineStyle !== "none" && outlineWidth !== "0px") ||
          boxShadow !== "none" ||
          // The field of the composer has no ring of its own: its frame changes.
          (element.closest(".composer") !== null && borderColor !== ""),
      };
    });

  /** Puts the keyboard in front of the page, where a reader begins. */
  const toBeginning = () =>
    page.evaluate(() => {
      const before = document.querySelector<HTMLElement>("#before") ?? document.createElement("span");
      before.id = "before";
      before.tabIndex = -1;
      document.body.prepend(before);
      before.focus();
    });

  /** Everything that Tab reaches from the beginning of the page, in order. */
  async function tabStops(): Promise<NonNullable<Awaited<ReturnType<typeof focused>>>[]> {
    await toBeginning();
    const stops: NonNullable<Awaited<ReturnType<typeof focused>>>[] = [];
    for (let presses = 0; presses < 120; presses++) {
      await page.keyboard.press("Tab");
      const stop = await focused();
      // After the last one it leaves the page, or begins again.
      if (stop === null || (stops.length > 0 && stop.name === stops[0]?.name)) break;
      stops.push(stop);
    }
    return stops;
  }

  test("opens every view with g and its key, where what is empty says what to do next", async () => {
    for (const [title, key, advice] of views.toReversed()) {
      await goByKeys(page, key);
      await page.locator('.nav-list a[aria-current="page"]', { hasText: title }).waitFor();
      await main().getByText(advice).first().waitFor();
      assert.equal(await page.title(), `${title} · Parley`);
    }
  });

  test("reaches everything in every view with Tab, in reading order and with a visible ring", async () => {
    for (const [title, key, advice] of views) {
      await goByKeys(page, key);
      await main().getByText(advice).first().waitFor();
      const stops = await tabStops();
      assert.equal(stops[0]?.name, "Skip to content", title);
      const hidden = stops.filter(({ isVisible, hasRing }) => !isVisible || !hasRing);
      assert.deepEqual(hidden, [], title);
      const places = stops.slice(1).map(({ isContent }) => isContent);
      const inOrder = places.toSorted((a, b) => Number(a) - Number(b));
      assert.deepEqual(places, inOrder, title);
      const wanted = await main()
        .locator('a[href], button:not([disabled]), input:not([type="hidden"]), select, textarea')
        .filter({ visible: true })
        .count();
      assert.ok(places.filter(Boolean).length >= wanted, `${title}: not all ${wanted} are reached`);
    }
  });

  test("skips to the content with the first link", async () => {
    await toBeginning();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "content");
  });

  test("goes to a view from the palette with arrows, and closes it with Escape where it was", async () => {
    await page.locator("#content").focus();
    await page.keyboard.press("Control+k");
    const field = page.getByRole("combobox", { name: "View or session" });
    await field.waitFor();
    await page.keyboard.press("Escape");
    await field.waitFor({ state: "detached" });
    assert.equal(await page.evaluate(() => document.activeElement?.id), "content");
    await page.keyboard.press("Control+k");
    await field.waitFor();
    await page.keyboard.type("s");
    await page.getByRole("option", { name: "Sessions", selected: true }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.getByRole("option", { name: "Approvals", selected: true }).waitFor({ state: "visible" });
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Sessions" }).waitFor();
  });

  test("lists every key with ?, and closes the list with Escape", async () => {
    await page.keyboard.press("?");
    const list = page.getByRole("dialog", { name: "Keys" });
    await list.waitFor();
    const keys = await list.locator("dt").allTextContents();
    for (const key of ["Ctrl K", "j / k", "?", "Esc", ...views.map(([, letter]) => `g ${letter}`)]) {
      assert.ok(keys.includes(key), `${key} is not among ${keys.join(", ")}`);
    }
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
  });

  test("moves through rows with j and k, and types into fields without moving", async () => {
    await goByKeys(page, "l");
    const rows = page.locator("[data-row]");
    await rows.nth(2).waitFor();
    const at = () => rows.evaluateAll((all) => all.findIndex((row) => row === document.activeElement));
    await page.keyboard.press("j");
    assert.equal(await at(), 0);
    await page.keyboard.press("j");
    assert.equal(await at(), 1);
    await page.keyboard.press("k");
    assert.equal(await at(), 0);
    await goByKeys(page, "e");
    await page.getByLabel("Search settings").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("gjk?");
    assert.equal(await page.getByLabel("Search settings").inputValue(), "gjk?");
    assert.equal(await page.getByRole("dialog").count(), 0);
  });

  test("goes to a view when the page was busy between g and its key", async () => {
    await page.evaluate(() => {
      const [g, key] = ["g", "u"].map((each) => new KeyboardEvent("keydown", { key: each, bubbles: true }));
      document.body.dispatchEvent(g as KeyboardEvent);
      const busyUntilMs = performance.now() + 1_100;
      while (performance.now() < busyUntilMs);
      document.body.dispatchEvent(key as KeyboardEvent);
    });
    await page.locator("h1", { hasText: "Usage" }).waitFor();
  });

  test("takes a key as soon as the navigation is there", async () => {
    await page.addInitScript(() => {
      const observer = new MutationObserver(() => {
        if (document.querySelector(".nav-list") === null) return;
        observer.disconnect();
        document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "?", bubbles: true }));
      });
      observer.observe(document, { subtree: true, childList: true });
    });
    await page.reload();
    const list = page.getByRole("dialog", { name: "Keys" });
    await list.waitFor();
    await page.keyboard.press("Escape");
    await list.waitFor({ state: "detached" });
  });

  test("uses the colours of the system", async () => {
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "light" });
    const light = await background();
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await background(), light);
  });
});
