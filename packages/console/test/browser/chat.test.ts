// Writing and reading in the chat, in a real browser against a real cluster. One cluster and one page; each test starts a new chat.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { Cleanup, fillSession, startTestCluster, type TestCluster } from "@parley/testing";
import type { Page } from "playwright-core";
import { findChromium, signInLink, startBrowser } from "./support.ts";

const chromium = findChromium();
const skip = chromium === null ? "Chromium is not installed (apt install chromium, or PARLEY_CHROMIUM)" : false;

/** A turn that runs until its approval is decided. */
const waits = 'tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: after the approval';

describe("chat in the console", { skip }, () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let page: Page;

  before(async () => {
    cluster = await startTestCluster(cleanup, {
      processes: [],
      settings:
        '[permissions]\nask = ["write(secret*)"]\n[session]\npolicy = "per_conversation"\n[profiles.counter]\ntools = ["exec"]\n',
    });
    const browser = await startBrowser(chromium ?? "");
    cleanup.add(() => browser.close());
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await page.goto(await signInLink(cluster.httpUrl, cluster.token));
    await page.getByRole("button", { name: "Start a chat" }).waitFor();
  });
  after(() => cleanup[Symbol.asyncDispose]());
  beforeEach(async () => {
    const before = page.url();
    await page.getByRole("button", { name: "New chat" }).first().click();
    await page.waitForURL((url) => url.href !== before && url.hash.startsWith("#/chat/"));
    await page.getByText("A new conversation").waitFor();
  });

  const area = () => page.locator(".composer textarea");

  async function say(text: string): Promise<void> {
    await area().fill(text);
    await area().press("Enter");
  }

  async function ended(count = 1): Promise<void> {
    await page
      .locator(".turn-end")
      .nth(count - 1)
      .waitFor();
  }

  test("shows the text so far of a running answer after another session was open", async () => {
    await say("wait: 100\nwords: 3000");
    await page.locator(".message.live", { hasText: "word5 " }).waitFor();
    const address = page.url();
    await page.goto(`${cluster.httpUrl}/#/sessions`);
    await page.locator(".session-line").first().waitFor();
    await page.goto(address);
    await page.locator(".message.live", { hasText: /^word1 word2 word3 word4 word5 word6 / }).waitFor();
    assert.equal(await page.getByText("the rest appears").count(), 0);
    await page.reload();
    await page.locator(".message.live", { hasText: /^word1 word2 word3 word4 word5 word6 / }).waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.locator(".turn-end", { hasText: "Stopped." }).waitFor();
  });

  test("shows the arguments of a call while the model writes them", async () => {
    const write = (lines: number) => {
      const content = Array.from({ length: lines }, (_, line) => `line ${line}`).join("\n");
      return `tool: write ${JSON.stringify({ path: "lines.txt", content })}\nthen\nsay: written`;
    };
    // So long that the call is not complete before the page shows it.
    await say(`wait: 100\n${write(3_000)}`);
    await page.locator(".pending-input", { hasText: /line 3\nline 4/ }).waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await ended();
    assert.equal(await page.locator(".pending-input").count(), 0);
    await say(write(3));
    await ended(2);
    await page.locator(".tool-done", { hasText: "lines.txt" }).waitFor();
    assert.equal(await page.locator(".pending-input").count(), 0);
  });

  test("shows what a command prints while it runs", async () => {
    await say(
      'tool: exec {"command":"echo first; while [ ! -e go ]; do sleep 0.1; done; echo second","wait_seconds":120}\nthen\nsay: over',
    );
    await page.locator(".live-output", { hasText: "first" }).waitFor();
    assert.doesNotMatch((await page.locator(".live-output").textContent()) ?? "", /second/);
    await writeFile(join(cluster.home, "workspace", "go"), "");
    await ended();
    assert.match((await page.locator(".tool-done .output").last().textContent()) ?? "", /first\s+second/);
    assert.equal(await page.locator(".live-output").count(), 0);
  });

  test("shows the sub-agents of a call with their state, also after a reload, and as a tree", async () => {
    const task =
      'tool: exec {"command":"while [ ! -e grown ]; do sleep 0.1; done","wait_seconds":120}\nthen\nsay: counted';
    await say(
      `tool: sessions_spawn ${JSON.stringify({ prompt: task, profile: "counter", description: "Count the trees" })}\nthen\nsay: over`,
    );
    const line = page.locator(".tree .fold", { hasText: "Count the trees" });
    await line.getByRole("img", { name: "running" }).waitFor();
    await page.reload();
    await line.getByRole("img", { name: "running" }).waitFor();
    await page.goto(page.url().replace("#/chat/", "#/session/"));
    await line.getByRole("img", { name: "running" }).waitFor();
    await page.goto(`${cluster.httpUrl}/#/sessions`);
    await page.getByLabel("Kind").selectOption("subagents");
    await page.locator(".session-line.child", { hasText: "Count the trees" }).waitFor();
    await writeFile(join(cluster.home, "workspace", "grown"), "");
    await page.goBack();
    await line.getByRole("img", { name: "ended" }).waitFor();
    await line.locator("summary").click();
    await line.getByText("It has started no further sub-agent.").waitFor();
    await line.getByRole("link", { name: "Count the trees" }).click();
    await page.locator(".message.assistant", { hasText: "counted" }).waitFor();
  });

  test("answers a question of the agent with a button", async () => {
    await say('tool: ask_user {"question":"Tea or coffee?","options":["Tea","Coffee"]}\nthen\nsay: noted');
    await page.locator(".ask", { hasText: "Tea or coffee?" }).getByRole("button", { name: "Coffee" }).click();
    await ended();
    await page.locator(".tool-done", { hasText: "Tea or coffee?" }).waitFor();
    assert.equal(await page.locator(".ask").count(), 0);
    assert.match((await page.locator(".tool-done .output").last().textContent()) ?? "", /Coffee/);
  });

  const give = (type: "drop" | "paste", name: string, mediaType: string, base64: string) =>
    page.locator(type === "drop" ? ".composer" : ".composer textarea").evaluate(
      (element, file) => {
        const bytes = Uint8Array.from(atob(file.base64), (each) => each.charCodeAt(0));
        const data = new DataTransfer();
        data.items.add(new File([bytes], file.name, { type: file.mediaType }));
        const about = { bubbles: true, cancelable: true };
        element.dispatchEvent(
          file.type === "drop"
            ? new DragEvent("drop", { ...about, dataTransfer: data })
            : new ClipboardEvent("paste", { ...about, clipboardData: data }),
        );
      },
      { type, name, mediaType, base64 },
    );

  test("keeps an unsent message with its files for each session when the page is loaded again", async () => {
    const draft = page.url();
    await area().fill("half a thought");
    await give("drop", "notes.txt", "text/plain", btoa("buy milk"));
    await page.locator(".chips", { hasText: "notes.txt" }).waitFor();
    await page.getByRole("button", { name: "New chat" }).first().click();
    await page.waitForURL((url) => url.href !== draft);
    await page.getByText("A new conversation").waitFor();
    assert.equal(await area().inputValue(), "");
    await page.goto(draft);
    await page.reload();
    await page.locator(".chips", { hasText: "notes.txt" }).waitFor();
    assert.equal(await area().inputValue(), "half a thought");
    await area().press("Enter");
    await page.locator(".message.user .files", { hasText: "notes.txt" }).waitFor();
    await ended();
    await page.reload();
    await ended();
    assert.equal(await area().inputValue(), "");
    assert.equal(await page.locator(".chips").count(), 0);
  });

  test("shows how long calls took that no tool-runner ran, also when the page is loaded again", async () => {
    const ask = { question: "Tea or coffee?", options: ["Tea", "Coffee"] };
    const task = { prompt: "say: counted", profile: "counter", description: "Count" };
    await say(
      `tool: ask_user ${JSON.stringify(ask)}\nthen\ntool: sessions_spawn ${JSON.stringify(task)}\nthen\ntool: todo {"todos":[]}\nthen\nsay: over`,
    );
    await page.locator(".ask").getByRole("button", { name: "Coffee" }).click();
    await ended();
    await page.reload();
    await ended();
    const facts = await page.locator(".tool .tool-facts").allTextContents();
    assert.equal(facts.length, 3);
    for (const each of facts) assert.match(each, /\d (?:ms|s)$/);
  });

  test("sends dropped and pasted files, and shows pictures", async () => {
    const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    await give("drop", "notes.txt", "text/plain", btoa("buy milk"));
    await page.locator(".chips", { hasText: "notes.txt" }).waitFor();
    await give("paste", "dot.png", "image/png", dot);
    await page.locator(".chips", { hasText: "dot.png" }).waitFor();
    await page.getByRole("button", { name: "Remove notes.txt" }).click();
    await give("drop", "list.txt", "text/plain", btoa("buy oats"));
    await page.locator(".chips", { hasText: "list.txt" }).waitFor();
    await say("say: received");
    await ended();
    const files = page.locator(".message.user .files");
    await files.getByText("list.txt").waitFor();
    assert.equal(await files.getByText("notes.txt").count(), 0);
    const picture = files.locator("img");
    await picture.waitFor();
    assert.equal(await picture.evaluate((each) => (each as HTMLImageElement).naturalWidth), 1);
  });

  test("edits a waiting message and takes another one back", async () => {
    await say(waits);
    await page.locator(".approval").waitFor();
    await page.getByLabel("While the turn runs").selectOption("queue");
    await say("say: first\nsay: of two lines");
    const first = page.locator(".queued-row", { hasText: "say: first" });
    await first.waitFor();
    await say("say: second");
    const second = page.locator(".queued-row", { hasText: "say: second" });
    await second.waitFor();
    await page.reload();
    await first.getByRole("button", { name: "Edit" }).click();
    const field = page.locator(".queue").getByLabel("Message");
    assert.equal(await field.inputValue(), "say: first\nsay: of two lines");
    await field.press("Escape");
    await first.getByRole("button", { name: "Edit" }).click();
    await field.fill("say: changed");
    await field.press("Enter");
    await page.locator(".queued-row", { hasText: "say: changed" }).waitFor();
    await second.getByRole("button", { name: "Take back" }).click();
    await second.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Approve" }).click();
    await ended(2);
    const answers = await page.locator(".message.assistant .markdown").allTextContents();
    assert.deepEqual(
      answers.map((each) => each.trim()),
      ["after the approval", "changed"],
    );
  });

  test("joins the running turn, or stops it first, as chosen", async () => {
    await say('tool: exec {"command":"while [ ! -e join ]; do sleep 0.1; done","wait_seconds":120}\nthen\nsay: alone');
    await page.locator(".tool-running").waitFor();
    await page.getByLabel("While the turn runs").selectOption("steer");
    await say("say: joined");
    await page.locator(".queued-row", { hasText: "joined" }).waitFor();
    await writeFile(join(cluster.home, "workspace", "join"), "");
    await ended();
    const answers = await page.locator(".message.assistant .markdown").allTextContents();
    assert.deepEqual(
      answers.map((each) => each.trim()),
      ["joined"],
    );
    await say("wait: 100\nwords: 3000");
    await page.locator(".message.live", { hasText: "word2 " }).waitFor();
    await page.getByLabel("While the turn runs").selectOption("interrupt");
    await say("say: instead");
    await ended(3);
    await page.locator(".turn-end", { hasText: "Stopped." }).waitFor();
    await page.locator(".message.assistant .markdown", { hasText: /^instead\s*$/ }).waitFor();
  });

  test("answers a message that waited to join a turn when that turn was stopped", async () => {
    await say('tool: exec {"command":"sleep 600"}\nthen\nsay: never');
    await page.locator(".tool-running").waitFor();
    await page.getByLabel("While the turn runs").selectOption("steer");
    await say("say: joined too late");
    await page.locator(".queued-row", { hasText: "joined too late" }).waitFor();
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.locator(".turn-end", { hasText: "Stopped." }).waitFor();
    await page.locator(".message.assistant .markdown", { hasText: /^joined too late\s*$/ }).waitFor();
  });

  test("completes a command from the menu and shows its answer", async () => {
    await area().fill("/stat");
    const menu = page.getByRole("listbox", { name: "Commands" });
    await menu.getByRole("option", { name: "/status", selected: true }).waitFor();
    await area().press("Tab");
    assert.equal(await area().inputValue(), "/status ");
    await area().press("Enter");
    await page.locator(".command-answer", { hasText: "Model" }).waitFor();
    assert.equal(await page.locator(".turn-end").count(), 0);
  });

  describe("with 1,200 messages", () => {
    const rows = () => page.locator(".rows > *");
    /** Scrolls to a distance from the top, in CSS pixels, and lets the page follow. */
    const scrollTo = (px: number) =>
      page.locator(".scroll").evaluate(async (element, top) => {
        element.scrollTop = top;
        for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
      }, px);
    /** The first row on the screen and its distance from the top of the scrolling area. */
    const firstShown = () =>
      page.locator(".scroll").evaluate((element) => {
        const { top } = element.getBoundingClientRect();
        const row = [...element.querySelectorAll(".rows > *")].find(
          (each) => each.getBoundingClientRect().bottom > top,
        );
        return { text: row?.textContent ?? "", px: (row?.getBoundingClientRect().top ?? 0) - top };
      });
    const heightOf = () => page.locator(".scroll").evaluate((element) => element.scrollHeight);

    beforeEach(async () => {
      await say("say: the beginning");
      await ended();
      const session = new URL(page.url()).hash.replace("#/chat/", "");
      await fillSession(cluster.databaseUrl, session, 1_200);
      await page.reload();
      await rows().filter({ hasText: "Message 1199:" }).waitFor();
    });

    test("renders only the rows near the screen, and keeps the place while earlier ones are read", async () => {
      assert.ok((await rows().count()) < 60, `${await rows().count()} rows`);
      const held = Promise.withResolvers<undefined>();
      const earlier = "**/messages?*";
      await page.route(earlier, async (route) => {
        await held.promise;
        await route.continue();
      });
      await scrollTo(1_000);
      const before = await firstShown();
      const height = await heightOf();
      held.resolve(undefined);
      await page.waitForFunction((px) => (document.querySelector(".scroll")?.scrollHeight ?? 0) > px + 3_000, height);
      const after = await firstShown();
      assert.equal(after.text, before.text);
      assert.ok(Math.abs(after.px - before.px) <= 2, `${before.px} is now ${after.px}`);
      await page.unroute(earlier);
      while ((await page.locator(".older").count()) > 0) await scrollTo(0);
      await scrollTo(0);
      await page.getByText("the beginning", { exact: true }).last().waitFor();
      assert.ok((await rows().count()) < 60, `${await rows().count()} rows`);
      await page.getByRole("button", { name: "Newest" }).click();
      await rows().filter({ hasText: "Message 1199:" }).waitFor();
    });

    test("keeps selected text while other rows are shown, and follows a new answer at the end", async () => {
      const selected = () => page.evaluate(() => document.getSelection()?.toString() ?? "");
      await rows().filter({ hasText: "Message 1199:" }).locator("p").first().selectText();
      assert.match(await selected(), /Message 1199: one archive/);
      await scrollTo((await heightOf()) - 6_000);
      assert.match(await selected(), /Message 1199: one archive/);
      await page.evaluate(() => document.getSelection()?.removeAllRanges());
      await page.getByRole("button", { name: "Newest" }).click();
      await say("say: after the long history");
      await rows()
        .filter({ hasText: /^after the long history/ })
        .waitFor();
      await page.waitForFunction(() => {
        const box = document.querySelector(".scroll");
        return box !== null && box.scrollHeight - box.scrollTop - box.clientHeight < 2;
      });
    });
  });
});
