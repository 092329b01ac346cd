// The console in a real browser against a real cluster. One cluster and one page; the tests run in order.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import { Cleanup, makeDeadLetter, startTelegramPeer, startTestCluster, type TestCluster } from "@parley/testing";
import type { Browser, Locator, Page } from "playwright-core";
import { findChromium, goByKeys, signInLink, startBrowser, startFront, type Front } from "./support.ts";

const chromium = findChromium();
/** The only reason to skip: no browser in PARLEY_CHROMIUM, on the PATH or in the cache. */
const skip = chromium === null ? "Chromium is not installed (apt install chromium, or PARLEY_CHROMIUM)" : false;

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

describe("console", { skip }, () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let front: Front;
  let browser: Browser;
  let page: Page;
  /** Addresses outside of the gateway that the page requested. */
  const foreign: string[] = [];
  const problems: string[] = [];

  before(async () => {
    cluster = await startTestCluster(cleanup, {
      processes: ["channel-gateway"],
      replicas: { "channel-gateway": 2 },
      settings: '[permissions]\nask = ["write(secret*)"]\n',
    });
    front = await startFront(cluster.httpUrls);
    cleanup.add(() => front.close());
    browser = await startBrowser(chromium ?? "");
    cleanup.add(() => browser.close());
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
    page = await context.newPage();
    page.on("request", (request) => {
      if (!request.url().startsWith(front.url) && !request.url().startsWith("blob:")) foreign.push(request.url());
    });
    page.on("pageerror", (error) => problems.push(error.stack ?? error.message));
    page.on("console", (message) => {
      if (/Content Security Policy/i.test(message.text())) problems.push(message.text());
    });
  });
  after(() => cleanup[Symbol.asyncDispose]());

  async function say(text: string): Promise<void> {
    await page.locator(".composer textarea").fill(text);
    await page.locator(".composer textarea").press("Enter");
  }

  async function sayAndWait(text: string): Promise<void> {
    const ends = await page.locator(".turn-end").count();
    await say(text);
    await page.locator(".turn-end").nth(ends).waitFor();
  }

  async function assertAccessible(): Promise<void> {
    // Through the debugger: the page's policy forbids other scripts.
    await page.evaluate(axeSource);
    const found = await page.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
      const { violations } = await axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
    });
    assert.deepEqual(found, []);
  }

  async function assertNoSidewaysScroll(): Promise<void> {
    const widths = await page.evaluate(() => {
      const main = document.querySelector("#content") ?? document.body;
      return { document: document.documentElement.scrollWidth, content: main.scrollWidth, window: window.innerWidth };
    });
    assert.ok(widths.document <= widths.window && widths.content <= widths.window, JSON.stringify(widths));
  }

  async function assertOneLine(element: Locator): Promise<void> {
    const { height, line } = await element.evaluate((found) => {
      const { lineHeight } = getComputedStyle(found);
      return { height: found.clientHeight, line: Number.parseFloat(lineHeight) };
    });
    assert.ok(height < 2 * line, `${height} px high with lines of ${line} px`);
  }

  test("asks for the token, and refuses a wrong one with what to do", async () => {
    await page.goto(front.url);
    await page.getByLabel("Token").fill("this is not the token");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("is not accepted").waitFor();
    await assertAccessible();
  });

  test("signs in with a link once, and keeps the code out of the address", async () => {
    const link = await signInLink(front.url, cluster.token);
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByRole("button", { name: "Start a chat" }).waitFor();
    assert.doesNotMatch(page.url(), /code=/);
    const cookies = await page.context().cookies();
    assert.ok(cookies.every(({ httpOnly, sameSite }) => httpOnly && sameSite === "Strict"));
    assert.equal(await page.evaluate(() => document.cookie), "");
    const other = await browser.newContext();
    const second = await other.newPage();
    await second.goto(link);
    await second.getByText("was used already").waitFor();
    await other.close();
  });

  test("streams an answer with Markdown, folded thinking and highlighted code", async () => {
    await page.getByRole("button", { name: "Start a chat" }).click();
    await page.locator(".composer textarea").waitFor();
    await sayAndWait(
      [
        "think: first a plan",
        "say: # Plan",
        "say: **bold** and `code`",
        "say: ",
        "say: ```ts",
        "say: const answer: number = 42;",
        "say: ```",
      ].join("\n"),
    );
    const answer = page.locator(".message.assistant");
    assert.equal(await answer.locator("h1").textContent(), "Plan");
    assert.equal(await answer.locator("strong").textContent(), "bold");
    await answer.locator(".hljs-keyword").waitFor();
    assert.equal(await answer.locator("details.thinking").getAttribute("open"), null);
    await answer.getByRole("button", { name: "Copy" }).waitFor();
  });

  test("shows tool calls with exit code, duration and differences", async () => {
    await sayAndWait(
      'tool: exec {"command":"echo hi; exit 3"}\ntool: write {"path":"note.txt","content":"milk"}\nthen\ntool: edit {"path":"note.txt","old_string":"milk","new_string":"oat milk"}\nthen\nsay: done',
    );
    await page.locator(".tool-failed", { hasText: "exit 3" }).waitFor();
    await page.locator(".tool-done .diff-added", { hasText: "oat milk" }).waitFor();
    await page.locator(".tool-facts", { hasText: / m?s/ }).first().waitFor();
    await page.reload();
    await page
      .locator(".tool-failed", { hasText: "exit 3" })
      .locator(".tool-facts", { hasText: /\d m?s$/ })
      .waitFor();
  });

  test("leads from the chat to the details of its session", async () => {
    await page.getByRole("link", { name: "Details of the session" }).click();
    await page.getByRole("button", { name: "Preview rewind" }).first().waitFor();
    await page.getByRole("link", { name: "Open" }).first().click();
    await page.locator(".composer textarea").waitFor();
  });

  test("asks before a call, keeps queued messages editable, and denies with a reason", async () => {
    const ends = await page.locator(".turn-end").count();
    await say('tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: after the question');
    await page.locator(".approval").waitFor();
    await page.getByRole("button", { name: "Deny…" }).click();
    await page.getByLabel("Reason for the agent").fill("not today");
    await page.getByRole("button", { name: "Deny", exact: true }).click();
    await page.locator(".tool-denied", { hasText: "not today" }).waitFor({ state: "attached" });
    // A message that arrives before the end of the turn joins it.
    await page.locator(".turn-end").nth(ends).waitFor();
    await say('tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written');
    await page.getByRole("button", { name: "Approve" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Always" }).count(), 0, "a rule requires approval each time");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.locator(".tool-done", { hasText: "secret.txt" }).waitFor();
    await page
      .locator(".turn-end")
      .nth(ends + 1)
      .waitFor();
  });

  test("runs and loads nothing of a hostile answer", async () => {
    const hostile = [
      "<script>window.pwned = 1</script><img src=x onerror='window.pwned=2'>",
      "<iframe src='https://evil.example/'></iframe><svg onload=window.pwned=3>",
      "[click](javascript:window.pwned=4) [data](data:text/html,<script>window.pwned=5</script>)",
      "![pixel](https://evil.example/pixel.png) <a href='javascript:alert(1)'>x</a>",
      "[ok](https://example.org/) invoice\u202Egpj.exe",
      "<form action=https://evil.example><input name=token></form><style>*{display:none}</style>",
      "[a]: javascript:window.pwned=6",
      "[ref][a] <https://evil.example/auto> &lt;script&gt;",
    ];
    await sayAndWait(hostile.map((line) => `say: ${line}\nsay: `).join("\n"));
    const answer = page.locator(".message.assistant").last();
    await answer.getByText("invoice").waitFor();
    const bad = await answer.evaluate((element) => ({
      elements: element.querySelectorAll("script, iframe, img, svg:not(.icon), form, input, style, object").length,
      handlers: [...element.querySelectorAll("*")].filter((each) =>
        [...each.attributes].some(({ name }) => name.startsWith("on") || name === "style"),
      ).length,
      links: [...element.querySelectorAll("a")].map((each) => new URL(each.href).protocol),
    }));
    assert.deepEqual({ ...bad, links: [] }, { elements: 0, handlers: 0, links: [] });
    assert.deepEqual([...new Set(bad.links)], ["https:"]);
    assert.match((await answer.textContent()) ?? "", /U\+202E/);
    for (const link of await answer.locator(".dead-link").all()) await link.click();
    assert.equal(await page.evaluate(() => (globalThis as { pwned?: number }).pwned), undefined);
    assert.deepEqual(foreign, []);
  });

  test("loses and doubles no text when its gateway is killed while an answer streams", async () => {
    await page.evaluate(() => {
      const samples: string[] = [];
      Object.assign(globalThis, { samples });
      new MutationObserver(() => {
        const text = document.querySelector(".message.live .markdown")?.textContent ?? "";
        if (text !== "" && samples.at(-1) !== text) samples.push(text);
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const ends = await page.locator(".turn-end").count();
    await say("wait: 25\nwords: 160");
    await page.waitForFunction(() => (globalThis as unknown as { samples: string[] }).samples.length > 5);
    await cluster.kill("channel-gateway", front.current() + 1, "SIGKILL");
    await page.locator(".turn-end").nth(ends).waitFor();
    const answer = (await page.locator(".message.assistant .markdown").last().textContent()) ?? "";
    const id = new URL(page.url()).hash.split("/").at(-1);
    const path = `${front.url}/api/sessions/${id}/messages?limit=1000`;
    const response = await fetch(path, { headers: { authorization: `Bearer ${cluster.token}` } });
    const { messages } = (await response.json()) as { messages: { role: string; parts: { text?: string }[] }[] };
    const stored = messages.findLast(({ role }) => role === "assistant")?.parts.map(({ text = "" }) => text);
    assert.equal(answer.trim(), stored?.join("").trim());
    const samples = await page.evaluate(() => (globalThis as unknown as { samples: string[] }).samples);
    const wrong = samples.filter((sample) => !answer.startsWith(sample.trimEnd()));
    assert.deepEqual(wrong, []);
  });

  test("opens every view by its address, without violation in both colour schemes", async () => {
    const turn = (await page.locator(".turn-end a").last().getAttribute("href")) ?? "";
    const session = new URL(page.url()).hash.replace("#/chat/", "#/session/");
    const put = { path: "AGENTS.md", content: "# Rules\n\nBe brief." };
    const headers = { authorization: `Bearer ${cluster.token}`, "content-type": "application/json" };
    await fetch(`${front.url}/api/documents/put`, { method: "POST", headers, body: JSON.stringify(put) });
    const addresses: [string, string][] = [
      ["#/sessions", ".session-line"],
      ["#/approvals", ".empty"],
      ["#/cluster", "tbody tr:nth-child(4)"],
      ["#/usage", "canvas"],
      ["#/schedules", ".empty"],
      ["#/documents/AGENTS.md", ".split-detail h1"],
      ["#/tools", "code"],
      ["#/people", ".empty"],
      ["#/channels", ".empty"],
      ["#/settings", "tbody tr:nth-child(9)"],
      [session, ".lines"],
      [turn, ".bar-model"],
    ];
    for (const [address, content] of addresses) {
      await page.goto(`${front.url}/${address}`);
      await page.locator(content).first().waitFor();
      for (const colorScheme of ["dark", "light"] as const) {
        await page.emulateMedia({ colorScheme });
        await assertAccessible();
      }
      for (const width of [390, 3_840, 1_280]) {
        await page.setViewportSize({ width, height: 800 });
        await assertNoSidewaysScroll();
        if (width > 760) await assertOneLine(page.locator(".search-button"));
      }
    }
    await page.goto(`${front.url}/${session.replace("#/session/", "#/chat/")}`);
    await page.locator(".turn-end").first().waitFor();
  });

  test("shows the exact request of a model call with its tokens, and copies it", async () => {
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator(".turn-end a").first().click();
    const calls = page.locator(".folds > li");
    await calls.first().locator("summary").first().click();
    await page.getByText("Exactly what was sent").waitFor();
    await calls
      .getByText(/tokens in · .* from the cache · .* out · /)
      .first()
      .waitFor();
    await calls.getByText(/^System prompt: [\d,.]+ characters$/).click();
    await calls.locator("pre", { hasText: "Parley" }).first().waitFor();
    await calls.getByText(/^Tools: \d+$/).click();
    await calls.getByText(/^Messages: \d+$/).click();
    await calls.locator(".sent-message pre", { hasText: "think: first a plan" }).first().waitFor();
    await assertAccessible();
    await page.setViewportSize({ width: 390, height: 800 });
    await assertNoSidewaysScroll();
    await page.setViewportSize({ width: 1280, height: 800 });
    // The button names its success only for a moment.
    await Promise.all([
      page.getByRole("button", { name: "Copied" }).waitFor(),
      page.getByRole("button", { name: "Copy as JSON" }).click(),
    ]);
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as Record<string, unknown>;
    assert.deepEqual(Object.keys(copied).toSorted(), ["messages", "parameters", "system", "tools"]);
  });

  test("finds a session by a word of its messages, and says when none matches", async () => {
    await page.goto(`${front.url}/#/sessions`);
    const search = page.getByLabel("Search titles and messages");
    const { height } = (await search.boundingBox()) ?? { height: Number.NaN };
    assert.ok(height < 60, `the field is ${height} px high`);
    await search.fill("invoice");
    await page.locator(".session-excerpt", { hasText: "invoice" }).first().waitFor();
    await assertAccessible();
    await page.setViewportSize({ width: 390, height: 800 });
    await assertNoSidewaysScroll();
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByLabel("Person: a name or an id").fill("nobody of this name");
    await page.getByText("No session matches").waitFor();
    await page.getByLabel("Person: a name or an id").fill("");
    await search.fill("");
    await page.locator(".session-line:not(.found)").first().waitFor();
  });

  test("sums usage by model, session and channel", async () => {
    await page.goto(`${front.url}/#/usage`);
    const sums = (name: string) => page.getByRole("region", { name });
    await sums("By model").getByText("rehearsal").waitFor();
    await page.getByLabel("Sum").selectOption("channel");
    await sums("By channel").getByRole("cell", { name: "http", exact: true }).waitFor();
    await page.getByLabel("Sum").selectOption("session");
    await sums("By session").getByRole("link").first().click();
    await page.locator(".composer textarea").waitFor();
  });

  test("shows each leader in time, and a table that fits 390 pixels", async () => {
    await page.goto(`${front.url}/#/cluster`);
    await page.locator(".timeline .current").waitFor();
    await page.getByText("None. A message is listed here when").waitFor();
    await page.setViewportSize({ width: 390, height: 800 });
    const frame = page.locator(".table-frame").first();
    const widths = await frame.evaluate((element) => [element.scrollWidth, element.clientWidth]);
    assert.ok((widths[0] ?? 0) <= (widths[1] ?? 0), `the table is ${widths.join(" wide in ")}`);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("queues a dead letter again with its button", async () => {
    const session = await makeDeadLetter(cluster.databaseUrl, "think: first a plan");
    await page.goto(`${front.url}/#/cluster`);
    const letter = page.locator(".lines li", { hasText: "first a plan" });
    await letter.waitFor();
    await assertAccessible();
    await letter.getByRole("button", { name: "Retry" }).click();
    await page.getByText("Queued again").waitFor();
    await letter.waitFor({ state: "detached" });
    await page.goto(`${front.url}/#/chat/${session}`);
    await page.locator(".message.user", { hasText: "first a plan" }).nth(1).waitFor();
    await page.locator(".message.assistant").last().locator("h1", { hasText: "Plan" }).waitFor();
  });

  /** A person writes for the first time; their code links them to a conversation, and they are removed again. */
  async function linkAndRemovePerson(telegram: Awaited<ReturnType<typeof startTelegramPeer>>): Promise<void> {
    await page.locator(".card", { hasText: "connected" }).waitFor();
    telegram.say("Hello?", { from: 77 });
    await telegram.untilSent(1);
    const code = /\b[A-Z2-9]{4}-[A-Z2-9]{4}\b/.exec(telegram.sent[0]?.text ?? "")?.[0] ?? "";
    await page.goto(`${front.url}/#/people`);
    await page.getByLabel("Code").fill(code);
    await page.getByLabel("Conversation").selectOption({ index: 1 });
    await assertAccessible();
    await page.getByRole("button", { name: "Link" }).click();
    const person = page.locator(".lines li", { hasText: "telegram:main" });
    await person.getByText(/joins /).waitFor();
    await assertAccessible();
    await person.getByLabel(/^Role of/).selectOption("blocked");
    await page.locator(".toast").first().waitFor();
    page.once("dialog", (dialog) => void dialog.accept());
    await person.getByRole("button", { name: /^Remove/ }).click();
    await page.getByText("Nobody was admitted by pairing").waitFor();
  }

  test("adds an account, shows why a platform refuses one, moves it to another gateway and removes it", async () => {
    const telegram = await startTelegramPeer();
    cleanup.add(() => telegram.close());
    await page.goto(`${front.url}/#/channels`);
    await page.getByRole("button", { name: "Add an account" }).click();
    await page.getByLabel("Platform").selectOption("telegram");
    await assertAccessible();
    await page.getByLabel(/Further settings/).fill(`api_root = ${telegram.url}`);
    await page.getByLabel(/the bot's token/).fill("1:wrong");
    const add = page.getByRole("button", { name: "Check and add" });
    await add.click();
    await page.locator(".toast.error").waitFor();
    await page.getByLabel(/the bot's token/).fill(telegram.token);
    await add.click();
    const card = page.locator(".card", { hasText: "telegram:main" });
    await card.waitFor();
    await linkAndRemovePerson(telegram);
    await page.goto(`${front.url}/#/channels`);
    const gateways = card.getByLabel("Gateway of telegram:main");
    const holder = await card.locator("dd").first().textContent();
    const other = holder === "channel-gateway-1" ? "channel-gateway-2" : "channel-gateway-1";
    await gateways.selectOption(other);
    await card.locator("dd", { hasText: other }).waitFor();
    await gateways.selectOption("any gateway");
    await page.getByText("The gateways choose who holds it").waitFor();
    await page.goto(`${front.url}/#/channels`);
    page.once("dialog", (dialog) => void dialog.accept());
    await card.getByRole("button", { name: "Remove" }).click();
    await page.getByText("No channel is configured").waitFor();
  });

  test("opens the documentation, which loads nothing from elsewhere and fits 390 pixels", async () => {
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name: "Docs" }).click();
    const shell = page;
    page = await opened;
    page.on("request", (request) => {
      if (!request.url().startsWith(front.url)) foreign.push(request.url());
    });
    page.on("pageerror", (error) => problems.push(error.message));
    await page.getByRole("heading", { name: "Getting started", level: 1 }).waitFor();
    await page.getByRole("link", { name: "Web console", exact: true }).click();
    await page.getByRole("img", { name: "An answer with tool calls" }).waitFor();
    for (const colorScheme of ["dark", "light"] as const) {
      await page.emulateMedia({ colorScheme });
      await assertAccessible();
    }
    await page.setViewportSize({ width: 390, height: 800 });
    await assertNoSidewaysScroll();
    await page.close();
    page = shell;
  });

  test("goes to a view from the palette and by keys", async () => {
    await page.locator("#content").focus();
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill("usage");
    await page.keyboard.press("Enter");
    await page.locator("h1", { hasText: "Usage" }).waitFor();
    await goByKeys(page, "s");
    await page.locator(".session-line").first().waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    await page.locator(".composer textarea").waitFor();
  });

  test("has no accessibility violation and no sideways scrolling at 390 pixels", async () => {
    await assertAccessible();
    await page.setViewportSize({ width: 390, height: 800 });
    await assertNoSidewaysScroll();
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("link", { name: "Chat", exact: true }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".menu-open").waitFor({ state: "detached" });
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test("marks when it is painted and when it takes input", async (context) => {
    // The first visit fills the caches of the gateway that has just started.
    await page.reload();
    await page.locator(".composer textarea").waitFor();
    await page.reload();
    // The browser adds the entry of the paint some time after the paint itself.
    await page.waitForFunction(
      () =>
        performance.getEntriesByName("first-contentful-paint").length > 0 &&
        performance.getEntriesByName("parley-interactive").length > 0,
    );
    const times = await page.evaluate(() => ({
      paintMs: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Number.POSITIVE_INFINITY,
      interactiveMs: performance.getEntriesByName("parley-interactive")[0]?.startTime ?? Number.POSITIVE_INFINITY,
    }));
    context.diagnostic(
      `first paint ${Math.round(times.paintMs)} ms, interactive ${Math.round(times.interactiveMs)} ms`,
    );
    assert.ok(Number.isFinite(times.paintMs) && Number.isFinite(times.interactiveMs));
  });

  test("has reported no error and loaded nothing from elsewhere", () => {
    assert.deepEqual({ problems, foreign }, { problems: [], foreign: [] });
  });

  test("stays open when the gateway does not confirm the sign-out, and ends with it", async () => {
    const session = "**/api/console/session";
    const signOut = page.getByRole("button", { name: "Sign out" });
    await page.route(session, (route) => route.abort());
    await signOut.click();
    await page.getByText("Not signed out: the gateway did not confirm it.").waitFor();
    assert.ok(await signOut.isVisible());
    await page.unroute(session);
    await signOut.click();
    await page.locator('input[name="token"]').waitFor();
    await page.reload();
    await page.locator('input[name="token"]').waitFor();
  });
});

interface Violation {
  id: string;
  nodes: { html: string }[];
}
