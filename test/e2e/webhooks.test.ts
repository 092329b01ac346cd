// Webhooks as the page describes them: added with the command line, set up at the sender, tested, and answered in a chat.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sign } from "@octokit/webhooks-methods";
import {
  Cleanup,
  missingAlertmanager,
  startAlertmanager,
  startTelegramPeer,
  startTestCluster,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { runParley } from "../../packages/cli/test/support/parley.ts";

// Before the first test: while the module waits, the registered tests would run, and `after` would stop the cluster.
const withAlertmanager = { skip: await missingAlertmanager() };
const cleanup = new Cleanup();
const folder = mkdtempSync(join(tmpdir(), "parley-webhooks-"));
cleanup.add(async () => rmSync(folder, { recursive: true, force: true }));
const file = join(folder, "parley.toml");
const secrets: Record<string, string> = {};
let cluster: TestCluster;
let telegram: TelegramPeer;

/** Runs a command line in a folder with `parley.toml`. */
const parley = (...args: string[]) =>
  runParley(join(folder, "home"), args, {
    env: {
      PARLEY_URL: cluster?.httpUrls[0] ?? "http://127.0.0.1:1",
      PARLEY_TOKEN: cluster?.token ?? "none",
      ...secrets,
    },
    cwd: folder,
  });

/** Adds a webhook and keeps the secret of its output, as a person would. */
async function addWebhook(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await parley("webhooks", "add", ...args);
  assert.equal(code, 0, stderr);
  const [, variable = "", secret = ""] = /export (PARLEY_CHANNEL_\w+)='([^']+)'/.exec(stdout) ?? [];
  secrets[variable] = secret;
  return stdout;
}

before(async () => {
  telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  writeFileSync(
    file,
    `[channels.telegram.main]\ntoken_env = "PARLEY_CHANNEL_TELEGRAM"\napi_root = "${telegram.url}"\nowners = ["42"]`,
  );
  const steps = await addWebhook("repo", "--from", "github", "--reply-to", "telegram:main:42");
  assert.match(
    steps,
    /1\. Set the secret.*\n2\. Restart Parley.*\n3\. Open \*Settings > Webhooks[\s\S]*parley webhooks test repo/,
  );
  assert.match(
    await addWebhook("errors", "--from", "sentry"),
    /Webhook URL: [\s\S]*\*Client Secret\*[\s\S]*Set the secret where the gateway runs[\s\S]*Restart Parley/,
  );
  await addWebhook("alerts", "--from", "alertmanager", "--target", "new", "--reply-to", "telegram:main:42");
  cluster = await startTestCluster(cleanup, {
    processes: [],
    settings: readFileSync(file, "utf8"),
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token, ...secrets } },
  });
});
after(() => cleanup[Symbol.asyncDispose]());

test("sends a test delivery whose answer arrives in the chat of reply_to", async () => {
  const { code, stdout, stderr } = await parley("webhooks", "test", "repo");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /stored in session/);
  const [answer] = await telegram.untilAnswered(1);
  assert.equal(answer?.chatId, 42);
});

test("answers an event that GitHub's own library signed, with its description as input", async () => {
  const body = JSON.stringify({
    action: "created",
    issue: { number: 3, title: "Broken" },
    comment: { user: { login: "eve" }, body: "say: I read the comment" },
    repository: { full_name: "octo/app" },
    sender: { login: "eve" },
  });
  const count = telegram.sent.length;
  const response = await fetch(`${cluster.httpUrls[0] ?? ""}/hooks/repo`, {
    method: "POST",
    headers: {
      "x-github-event": "issue_comment",
      "x-github-delivery": "72d3162e-cc78-11e3-81ab-4c9367dc0958",
      "x-hub-signature-256": await sign(secrets["PARLEY_CHANNEL_HOOK_REPO"] ?? "", body),
    },
    body,
  });
  assert.equal(response.status, 202);
  const answers = await telegram.untilAnswered(count + 1);
  assert.match(answers.at(-1)?.text ?? "", /I read the comment/);
});

test("answers what a real Alertmanager notifies of a firing and a resolved alert", withAlertmanager, async () => {
  const url = `${cluster.httpUrls[0] ?? ""}/hooks/alerts`;
  await using alertmanager = await startAlertmanager({ url, secret: secrets["PARLEY_CHANNEL_HOOK_ALERTS"] ?? "" });
  const labels = { alertname: "DiskFull", instance: "db-1" };
  const startsAt = new Date(Date.now() - 60_000).toISOString();
  const count = telegram.sent.length;
  await alertmanager.alert({ labels, annotations: { summary: "The disk of db-1 is full" }, startsAt });
  const [fired] = (await telegram.untilAnswered(count + 1)).slice(count);
  assert.match(fired?.text ?? "", /Alertmanager: firing \(1\) alertname=DiskFull/);
  assert.match(fired?.text ?? "", /instance=db-1\n +The disk of db-1 is full/);
  await alertmanager.alert({ labels, startsAt, endsAt: new Date(Date.now() - 1_000).toISOString() });
  const [resolved] = (await telegram.untilAnswered(count + 2)).slice(count + 1);
  assert.match(resolved?.text ?? "", /Alertmanager: resolved \(1\)[\s\S]*until: /);
});

test("lists webhooks, and names what is wrong with a delivery, a name or a missing secret", async () => {
  const listed = await parley("webhooks", "list");
  assert.match(
    listed.stdout,
    /repo +\/hooks\/repo +GitHub +event +by session.share +telegram:main:42 +PARLEY_CHANNEL_HOOK_REPO is set here/,
  );
  const { webhooks } = JSON.parse((await parley("webhooks", "list", "--json")).stdout) as {
    webhooks: { id: string }[];
  };
  assert.deepEqual(
    webhooks.map(({ id }) => id),
    ["repo", "errors", "alerts"],
  );
  assert.equal((await parley("webhooks", "test", "alerts")).code, 0);
  const right = secrets["PARLEY_CHANNEL_HOOK_ALERTS"] ?? "";
  secrets["PARLEY_CHANNEL_HOOK_ALERTS"] = "wrong";
  const refused = await parley("webhooks", "test", "alerts");
  assert.deepEqual(
    [refused.code, /refused the delivery with 401: the signature does not match/.test(refused.stderr)],
    [1, true],
  );
  secrets["PARLEY_CHANNEL_HOOK_ALERTS"] = "";
  assert.match((await parley("webhooks", "test", "alerts")).stderr, /PARLEY_CHANNEL_HOOK_ALERTS is not set here/);
  secrets["PARLEY_CHANNEL_HOOK_ALERTS"] = right;
  assert.match((await parley("webhooks", "test", "nothing")).stderr, /no webhook nothing/);
  assert.match((await parley("webhooks", "add", "repo")).stderr, /already has \[webhooks.repo\]/);
  assert.match(
    (await parley("webhooks", "add", "x", "--reply-to", "telegram")).stderr,
    /<channel>:<account>:<conversation>/,
  );
  assert.match(
    (await parley("webhooks", "add", "x", "--reply-to", "telegraph:main:42")).stderr,
    /there is no channel "telegraph"/,
  );
  assert.match((await parley("webhooks", "add", "Not a name")).stderr, /webhooks/);
  assert.ok(!readFileSync(file, "utf8").includes("Not a name"));
  assert.ok(!readFileSync(file, "utf8").includes(right), "the file has no secret");
});
