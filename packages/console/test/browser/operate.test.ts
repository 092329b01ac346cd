// Operating a cluster from the views, in a real browser against a real cluster. One cluster and one page; the tests run in order.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { addSessions, Cleanup, startTelegramPeer, startTestCluster, type TestCluster } from "@parley/testing";
import type { Page, Route } from "playwright-core";
import { startGuarded, type Guarded } from "../../../../services/tool-runner/test/mcp/servers/guarded.ts";
import { findChromium, signInLink, startBrowser } from "./support.ts";

const chromium = findChromium();
const skip = chromium === null ? "Chromium is not installed (apt install chromium, or PARLEY_CHROMIUM)" : false;

const manySessions = 10_000;

describe("operating from the console", { skip }, () => {
  const cleanup = new Cleanup();
  let cluster: TestCluster;
  let page: Page;
  let guarded: Guarded;

  before(async () => {
    guarded = await startGuarded();
    cleanup.add(() => guarded.stop());
    cluster = await startTestCluster(cleanup, {
      processes: [],
      settings: `[permissions]\nask = ["write(secret*)"]\n[session]\npolicy = "per_conversation"\n[mcp.servers.guarded]\nurl = "${guarded.url}"\noauth = {}\n[channels.irc.down]\nhost = "127.0.0.1"\nport = 9\ntls = false\nnick = "parley"\n`,
      env: { "tool-runner": { PARLEY_MCP_KEY: "the operator's long key" } },
    });
    const browser = await startBrowser(chromium ?? "");
    cleanup.add(() => browser.close());
    page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.on("dialog", (dialog) => void dialog.accept());
    await page.goto(await signInLink(cluster.httpUrl, cluster.token));
    await page.getByRole("button", { name: "Start a chat" }).waitFor();
  });
  after(() => cleanup[Symbol.asyncDispose]());

  async function api<T>(path: string, body?: object): Promise<T> {
    const response = await fetch(`${cluster.httpUrl}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${cluster.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()) as T;
  }

  /** Writes to a new session and returns its id. */
  async function begin(conversation: string, text: string): Promise<string> {
    const route = `http:default:${conversation}`;
    const { session } = await api<{ session: { sessionId: string } }>("/api/sessions", { action: "new", route });
    await api("/api/messages", { session: session.sessionId, text });
    return session.sessionId;
  }

  const open = (address: string) => page.goto(`${cluster.httpUrl}/#/${address}`);
  const toast = (text: string | RegExp) => page.locator(".toast", { hasText: text }).first().waitFor();
  const turnEnds = (session: string, count = 1) =>
    open(`chat/${session}`).then(() =>
      page
        .locator(".turn-end")
        .nth(count - 1)
        .waitFor(),
    );

  test("answers a question and approves a call of other sessions, under the titles of those", async () => {
    const asking = await begin(
      "drinks",
      'tool: ask_user {"question":"Tea or coffee?","options":["Tea","Coffee"]}\nthen\nsay: noted',
    );
    const writing = await begin("secrets", 'tool: write {"path":"secret.txt","content":"x"}\nthen\nsay: written');
    await open("approvals");
    const question = page.locator(".card", { hasText: "Tea or coffee?" });
    const approval = page.locator(".card", { has: page.getByRole("button", { name: "Approve" }) });
    await approval.getByRole("link", { name: /^tool: write/ }).waitFor();
    await page.locator(".nav-list .badge", { hasText: "2" }).waitFor();
    await question.getByRole("link", { name: /^tool: ask_user/ }).waitFor();
    await question.getByRole("button", { name: "Coffee" }).click();
    await question.waitFor({ state: "detached" });
    await approval.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Nothing waits for you").waitFor();
    await page.getByLabel("Which approvals").selectOption("all");
    await page.getByText(/^Approved by /).waitFor();
    await turnEnds(asking);
    await page.locator(".message.assistant", { hasText: "noted" }).waitFor();
    await turnEnds(writing);
    await page.locator(".tool-done", { hasText: "secret.txt" }).waitFor();
  });

  test("allows similar calls of a session with Always", async () => {
    const post = (text: string) =>
      `tool: message {"to":"http:default:elsewhere","text":"${text}"}\nthen\nsay: sent ${text}`;
    const session = await begin("always", post("first"));
    await open(`chat/${session}`);
    await page.getByRole("button", { name: "Always" }).click();
    await page.locator(".message.assistant", { hasText: "sent first" }).waitFor();
    await page.locator(".composer textarea").fill(post("second"));
    await page.locator(".composer textarea").press("Enter");
    await page.locator(".message.assistant", { hasText: "sent second" }).waitFor();
    assert.equal(await page.locator(".approval").count(), 0);
  });

  test("renames, archives, restores, forks and compacts a session", async () => {
    const session = await begin("garden", "say: the beginning");
    await turnEnds(session);
    await open(`session/${session}`);
    await page.getByLabel("Title").fill("The garden");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.locator("h1", { hasText: "The garden" }).waitFor();
    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Restore" }).waitFor();
    await open("sessions");
    await page.getByLabel("State").selectOption("archived");
    await page.locator(".session-line", { hasText: "The garden" }).getByRole("button").click();
    await page.getByRole("button", { name: "Restore" }).click();
    await page.getByRole("button", { name: "Archive" }).waitFor();
    await page.getByRole("button", { name: "Compact" }).click();
    await toast(/nothing to compact yet|^Compacted/);
    await page.getByRole("button", { name: "Fork" }).click();
    await page.locator(".chat-head h1", { hasText: "The garden (fork)" }).waitFor();
    await page.locator(".message.assistant", { hasText: "the beginning" }).waitFor();
  });

  test("rewinds the files of a turn after a preview", async () => {
    const note = join(cluster.home, "workspace", "plan.txt");
    const session = await begin(
      "rewind",
      `say: ${"a long request ".repeat(8)}\ntool: write {"path":"plan.txt","content":"first"}\nthen\nsay: over`,
    );
    await turnEnds(session);
    assert.equal(await readFile(note, "utf8"), "first");
    await open(`session/${session}`);
    // The beginning of a long request ends with a mark that it is cut.
    await page.locator(".lines bdi", { hasText: /^say: a long request .*…$/ }).waitFor();
    await page.getByRole("button", { name: "Preview rewind" }).click();
    await page.locator(".approval li", { hasText: /^will be deleted plan\.txt/ }).waitFor();
    assert.equal(await readFile(note, "utf8"), "first");
    await page.getByRole("button", { name: "Rewind", exact: true }).click();
    await toast("The files are restored");
    await assert.rejects(readFile(note, "utf8"), { code: "ENOENT" });
  });

  test("creates a job, runs it, shows its history, switches and deletes it", async () => {
    await open("schedules");
    await page.getByRole("button", { name: "New job" }).click();
    await page.getByLabel("Name").fill("Briefing");
    await page.getByLabel("When").fill("cron 0 7 * * 1-5");
    await page.getByLabel("Prompt").fill("say: good morning");
    await page.getByRole("button", { name: "Create" }).click();
    const job = page.locator(".card", { hasText: "Briefing" });
    await job.getByText(/^Next: /).waitFor();
    await job.getByRole("button", { name: "Run now" }).click();
    await job.getByText(/ · last: fired/).waitFor();
    await job.getByRole("button", { name: "History" }).click();
    await job.locator(".lines .tag").first().waitFor();
    await job.getByRole("button", { name: "Switch off" }).click();
    await job.getByText("No further run").waitFor();
    await job.getByRole("button", { name: "Delete" }).click();
    await page.getByText("No jobs yet").waitFor();
  });

  test("keeps what a newer response has shown when an older one arrives after it", async () => {
    const create = (name: string) =>
      api("/api/schedules", { name, schedule: "cron 0 7 * * 1-5", prompt: "say: hello" });
    const [first, second] = ["Watering", "Harvest"].map((name) => page.locator(".card", { hasText: name }));
    assert.ok(first !== undefined && second !== undefined);
    await create("Watering");
    await open("schedules");
    await first.waitFor();
    const [read, late] = [Promise.withResolvers<undefined>(), Promise.withResolvers<undefined>()];
    const lists = "**/api/schedules?*";
    const hold = async (route: Route) => {
      const response = await route.fetch();
      read.resolve(undefined);
      await late.promise;
      await route.fulfill({ response });
    };
    await page.route(lists, hold, { times: 1 });
    await first.getByRole("button", { name: "Switch off" }).click();
    await read.promise;
    await create("Harvest");
    await first.getByRole("button", { name: "Run now" }).click();
    await second.waitFor();
    const arrived = page.waitForResponse(lists);
    late.resolve(undefined);
    await (await arrived).finished();
    await page.evaluate(() => new Promise((resolve) => setTimeout(() => requestAnimationFrame(resolve))));
    assert.equal(await second.count(), 1);
    for (const job of [first, second]) {
      await job.getByRole("button", { name: "Delete" }).click();
      await job.waitFor({ state: "detached" });
    }
  });

  test("edits a document, compares its versions and restores one", async () => {
    await api("/api/documents/put", { path: "AGENTS.md", content: "# Rules\n\nBe brief.\n" });
    await open("documents/AGENTS.md");
    await page.getByRole("button", { name: "Edit" }).click();
    // The person leaves the view before the next frame is drawn.
    await page.getByLabel("Text of AGENTS.md").evaluate((area) => {
      (area as HTMLTextAreaElement).value = "# Rules\n\nBe thorough.\n";
      area.dispatchEvent(new Event("input", { bubbles: true }));
      location.hash = "#/tools";
    });
    await page.locator(".tools").waitFor();
    await open("documents/AGENTS.md");
    await page.getByRole("button", { name: "Edit" }).click();
    await page.locator(".diff-removed", { hasText: "Be brief." }).waitFor();
    await page.getByRole("button", { name: "Save as a new version" }).click();
    await page.locator(".markdown", { hasText: "Be thorough." }).waitFor();
    await page.getByRole("button", { name: "History" }).click();
    await page.getByRole("button", { name: "Difference" }).click();
    await page.locator(".diff-added", { hasText: "Be thorough." }).waitFor();
    await page.getByRole("button", { name: "Restore" }).click();
    await toast("Restored");
    await page.getByRole("button", { name: "Text" }).click();
    await page.locator(".markdown", { hasText: "Be brief." }).waitFor();
  });

  test("shows in the navigation that the turn of another session runs, and soon after its end no longer", async () => {
    await begin(
      "elsewhere",
      'tool: exec {"command":"while [ ! -e ended ]; do sleep 0.1; done","wait_seconds":120}\nthen\nsay: over',
    );
    await open("tools");
    await page.reload();
    const mark = page.locator(".recent li").first().getByRole("img", { name: "running" });
    await mark.waitFor();
    await writeFile(join(cluster.home, "workspace", "ended"), "");
    await mark.waitFor({ state: "detached", timeout: 10_000 });
  });

  test("lets a person consent to an MCP server, hides one of its tools, and switches it off and on", async () => {
    await open("tools");
    await page.locator(".tools li", { hasText: /^ask_userAsk .+/ }).waitFor();
    const server = page.locator(".card", { hasText: "guarded" });
    await server.locator(".tag", { hasText: "consent" }).waitFor();
    await server.getByRole("button", { name: "Get the link" }).click();
    const link = await server.getByRole("link", { name: /^Open 127\.0\.0\.1/ }).getAttribute("href");
    // The gateway of the test has another port than mcp.public_url.
    const back = new URL((await fetch(link ?? "", { redirect: "manual" })).headers.get("location") ?? "");
    const answer = await fetch(`${cluster.httpUrl}${back.pathname}${back.search}`);
    assert.match(await answer.text(), /may now use guarded/);
    await server.locator(".tag", { hasText: "ready" }).waitFor();
    await server.getByRole("button", { name: "Tools" }).click();
    await server.locator(".lines li", { hasText: /^secret .*Read the treasure\./ }).waitFor();
    await server.getByRole("button", { name: "Hide from the agent" }).click();
    await server.getByRole("button", { name: "Show to the agent" }).waitFor();
    await server.getByText("0 tools").waitFor();
    await server.getByRole("button", { name: "Switch off" }).click();
    await server.locator(".tag", { hasText: "off" }).waitFor();
    await server.getByRole("button", { name: "Switch on" }).click();
    await server.locator(".tag", { hasText: "ready" }).waitFor();
  });

  test("tests, pauses and resumes an account, and shows its connection among those of the cluster", async () => {
    const telegram = await startTelegramPeer();
    cleanup.add(() => telegram.close());
    const settings = { api_root: telegram.url, owners: ["42"] };
    await api("/api/channels", { channel: "telegram", settings, secrets: { token_env: telegram.token } });
    // No gateway answers in time once.
    const silent = async (route: Route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...((await response.json()) as object), replicas: [] } });
    };
    await page.route("**/api/status", silent, { times: 1 });
    await open("channels");
    const card = page.locator(".card", { hasText: "telegram:main" });
    await card.getByLabel("Gateway of telegram:main").waitFor();
    await card.locator(".tag", { hasText: "connected" }).waitFor();
    await card.getByRole("button", { name: "Test" }).click();
    await toast("It works");
    await open("cluster");
    const connection = page.getByRole("region", { name: "Connections" }).getByRole("row", { name: /telegram:main/ });
    await connection.getByText("connected").waitFor();
    assert.deepEqual((await connection.getByRole("cell").allTextContents()).slice(1), [
      "connected",
      "channel-gateway-1",
      "none",
      "none",
    ]);
    await open("channels");
    await card.getByRole("button", { name: "Pause" }).click();
    await card.locator(".tag", { hasText: "paused" }).waitFor();
    await card.getByRole("button", { name: "Resume" }).click();
    await card.locator(".tag", { hasText: "connected" }).waitFor();
    telegram.say("say: by way of Telegram");
    await telegram.untilSent(1);
    await open("sessions");
    await page.getByLabel("Channel").selectOption("telegram");
    await page.locator(".session-facts", { hasText: "telegram" }).waitFor();
    // The list without the filter contains the session too.
    await page.locator(".session-line").nth(1).waitFor({ state: "detached" });
    assert.equal(await page.locator(".session-line").count(), 1);
    await page.getByLabel("Person").fill("42");
    await page.locator(".session-line").getByRole("link").click();
    await page.locator(".turn-end a").click();
    await page.locator(".bar-label", { hasText: "Delivery to telegram" }).waitFor();
  });

  test("leads from an account that cannot connect to the troubleshooting of its channel", async () => {
    await open("channels");
    const card = page.locator(".card", { hasText: "irc:down" });
    await card.locator(".tag", { hasText: "failing" }).waitFor();
    const opened = page.context().waitForEvent("page");
    await card.getByRole("link", { name: "What to do" }).click();
    const documentation = await opened;
    await documentation.getByRole("heading", { name: "Troubleshooting" }).waitFor();
    assert.match(documentation.url(), /\/docs\/channels\/irc#troubleshooting$/);
    await documentation.close();
  });

  test("shows settings by origin, and what the check of parley.toml finds", async () => {
    await open("settings");
    await page.getByLabel("Search settings").fill("session.policy");
    const row = page.getByRole("row", { name: /session\.policy/ });
    assert.match((await row.textContent()) ?? "", /"per_conversation".*parley\.toml/);
    const file = join(cluster.home, "parley.toml");
    await writeFile(file, `${await readFile(file, "utf8")}\n[limits]\nmax_turnss = 3\n`);
    await page.reload();
    await page
      .getByRole("region", { name: "Problems" })
      .getByText(/max_turnss/)
      .waitFor();
  });

  test("says what to do when a request fails, and recovers with Try again", async () => {
    await page.route("**/api/schedules?*", (route) => route.abort());
    await open("schedules");
    const failure = page.getByRole("alert");
    await failure.getByText("The gateway does not respond").waitFor();
    await failure.getByText("Start Parley with").waitFor();
    await page.unroute("**/api/schedules?*");
    await failure.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No jobs yet").waitFor();
    await open("turn/01a20bd6-0000-7000-8000-000000000000");
    await page.getByRole("alert").getByText("It may have been deleted. Go back to the list.").waitFor();
  });

  test("scrolls a list of 10,000 sessions with few of its rows in the page", async () => {
    await addSessions(cluster.databaseUrl, manySessions);
    await open("sessions");
    await page.reload();
    const list = page.getByRole("region", { name: "Sessions" });
    await list.locator(".session-line").first().waitFor();
    // Pages are read one after the other as their end comes near.
    await page.waitForFunction(
      (title) => {
        const box = document.querySelector(".virtual");
        if (box === null) return false;
        box.scrollTop = box.scrollHeight;
        return box.textContent.includes(title);
      },
      `Added session ${manySessions}`,
      { timeout: 120_000, polling: "raf" },
    );
    assert.ok((await list.locator(".session-line").count()) < 60);
    await page.getByLabel("Search titles and messages").fill("Added session 4242");
    await list.getByText("Added session 4242", { exact: true }).waitFor();
  });
});
