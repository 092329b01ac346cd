// A backup while messages arrive, the loss of everything, and the restore into a new database and an empty folder.
import { createHash, randomBytes } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { services } from "@parley/contracts";
import {
  apiClient,
  Cleanup,
  startTelegramPeer,
  startTestCluster,
  temporaryFolder,
  type TelegramPeer,
  type TestCluster,
} from "@parley/testing";
import { backup } from "../../services/store/src/backup.ts";
import { restore } from "../../services/store/src/restore.ts";
import { startLoad, telegramPeople, type Sample } from "./load/clients.ts";
import { startChaosDatabase, type ChaosDatabase } from "./setup.ts";

export interface BackupOptions {
  /** Half of it in messages, half in files of the workspace. */
  megabytes: number;
  /** Messages a second. */
  rate: number;
  report: (line: string) => void;
}

interface BackupReport {
  problems: string[];
  messages: number;
  backupMs: number;
  restoreMs: number;
  /** Texts sent again because they were not answered at the moment of the backup. */
  repeated: number;
}

const warmUpMs = 10_000;
const afterCutMs = 5_000;
const fileBytes = 8 * 1024 * 1024;
const rowBytes = 2_048;
/** The message of the session that gets them. */
const filledText = "filled with messages";
/** On average, with the space after it. */
const wordBytes = 9;

export async function runBackup({ megabytes, rate, report }: BackupOptions): Promise<BackupReport> {
  await using cleanup = new Cleanup();
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const source = await startChaosDatabase(cleanup);
  const cluster = await startCluster(cleanup, source, telegram);
  const workspace = join(cluster.home, "workspace");
  await mkdir(join(workspace, "effects"), { recursive: true });
  const load = startLoad({ url: cluster.httpUrl, token: cluster.token, rate, telegram });
  await delay(warmUpMs);
  const hashes = await fillWorkspace(join(workspace, "files"), (megabytes / 2) * 1024 * 1024);
  await apiClient(cluster.httpUrls, cluster.token).ask(`say: ${filledText}`, "filled");
  await fillDatabase(source, (megabytes / 2) * 1024 * 1024);
  report(`filled with ${megabytes} MB`);

  const target = join(await temporaryFolder(cleanup), "backup");
  const [fromMs, since] = [performance.now(), Date.now()];
  const manifest = await backup(source.server().ownerUrl, { workspace }, target);
  const backupMs = performance.now() - fromMs;
  report(`backup: ${Math.round(backupMs / 1_000)} s`);
  const cutMs = fromMs + (Date.parse(manifest.cutAt) - since);
  await delay(afterCutMs);
  await load.stop();

  for (const { service, number } of cluster.replicas()) await cluster.kill(service, number, "SIGKILL");
  await cluster.stop();
  await source.server().kill("SIGKILL");
  await rm(workspace, { recursive: true });
  const sentBefore = telegram.sent.length;

  const restored = await startChaosDatabase(cleanup);
  const restoreFromMs = performance.now();
  await restore(restored.server().ownerUrl, { workspace }, target);
  const restoreMs = performance.now() - restoreFromMs;
  report(`restore: ${Math.round(restoreMs / 1_000)} s`);
  const problems = [
    ...load.samples.flatMap(({ id, problem }) => (problem === null ? [] : [`before the loss: ${id}: ${problem}`])),
    ...(await historyProblems(restored, load.samples, cutMs)),
    ...(await workspaceProblems(join(workspace, "files"), hashes)),
  ];
  const again = await startCluster(cleanup, restored, telegram);
  const client = apiClient(again.httpUrls, again.token);
  const answer = await client.ask("say: here again", "after");
  if (answer !== "here again") problems.push(`after the restore: answered "${answer}"`);
  await untilIdle(restored);
  const repeats = repeatedTexts(telegram, sentBefore);
  const answered = new Set(load.samples.filter((sample) => wasAnswered(sample, cutMs)).map(({ id }) => id));
  problems.push(...repeats.filter((id) => answered.has(id)).map((id) => `${id}: sent again after the restore`));
  return { problems, messages: load.samples.length, backupMs, restoreMs, repeated: repeats.length };
}

function startCluster(cleanup: Cleanup, database: ChaosDatabase, telegram: TelegramPeer): Promise<TestCluster> {
  return startTestCluster(cleanup, {
    servers: { postgres: database.server() },
    processes: services,
    settings: `
[session]
policy = "per_conversation"
[queue]
mode = "queue"
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegram.url}"
allow_from = ${JSON.stringify(telegramPeople.map(String))}
dm_policy = "allowlist"
preview = false
`,
    env: { "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token } },
  });
}

/** Files of random content, which no compression makes smaller; returns their hashes. */
async function fillWorkspace(folder: string, bytes: number): Promise<Map<string, string>> {
  await mkdir(folder, { recursive: true });
  const hashes = new Map<string, string>();
  for (let number = 0; number * fileBytes < bytes; number += 1) {
    const content = randomBytes(fileBytes);
    await using file = await open(join(folder, `${number}.bin`), "w");
    await file.writeFile(content);
    hashes.set(`${number}.bin`, createHash("sha256").update(content).digest("hex"));
  }
  return hashes;
}

/** Messages of earlier turns in a session of its own, which no client of the load uses. */
async function fillDatabase(database: ChaosDatabase, bytes: number): Promise<void> {
  await database.query(
    `WITH chosen AS (
       SELECT session_id, turn_id FROM parley.messages WHERE role = 'assistant' AND parts LIKE '%${filledText}%' LIMIT 1
     ), filled AS (
       INSERT INTO parley.messages (session_id, seq, turn_id, role, parts)
       SELECT session_id, (SELECT seq FROM parley.sessions WHERE id = session_id) + n, turn_id, 'assistant',
         '[{"type":"text","text":"' || (
           SELECT string_agg('word' || (n * 31 + i * 17) % 20000, ' ') FROM generate_series(1, ${Math.round(rowBytes / wordBytes)}) i) || '"}]'
       FROM chosen, generate_series(1, $1::int) n RETURNING session_id
     )
     UPDATE parley.sessions SET seq = seq + $1::int WHERE id = (SELECT session_id FROM chosen) AND EXISTS (SELECT FROM filled)`,
    [Math.ceil(bytes / rowBytes)],
  );
}

const wasAnswered = ({ answeredAtMs, problem }: Sample, byMs: number): boolean =>
  answeredAtMs !== null && problem === null && answeredAtMs < byMs;

/** Messages that were answered before the backup and are not complete, or are there twice. */
async function historyProblems(database: ChaosDatabase, samples: readonly Sample[], cutMs: number): Promise<string[]> {
  const rows = await database.query<{ role: string; text: string; n: number }>(
    `SELECT role, text, count(*)::int AS n FROM (
       SELECT m.role, substring(m.parts FROM 'load-[0-9]+-[0-9a-f]{8}') AS text FROM parley.messages m WHERE m.role <> 'tool') found
     WHERE text IS NOT NULL GROUP BY role, text`,
  );
  const counts = new Map(rows.map(({ role, text, n }) => [`${role} ${text}`, n]));
  return samples
    .filter((sample) => wasAnswered(sample, cutMs))
    .flatMap(({ id, hasEffect }) => {
      const [asked, answers] = [counts.get(`user ${id}`) ?? 0, counts.get(`assistant ${id}`) ?? 0];
      // A turn with a command has a message for the call and one for the answer.
      return asked === 1 && answers === (hasEffect ? 2 : 1)
        ? []
        : [`${id}: ${asked} questions, ${answers} answers restored`];
    });
}

async function workspaceProblems(folder: string, hashes: ReadonlyMap<string, string>): Promise<string[]> {
  const problems: string[] = [];
  for (const [name, hash] of hashes) {
    await using file = await open(join(folder, name), "r");
    const found = createHash("sha256")
      .update(await file.readFile())
      .digest("hex");
    if (found !== hash) problems.push(`${name}: another content was restored`);
  }
  return problems;
}

async function untilIdle(database: ChaosDatabase): Promise<void> {
  for (;;) {
    const [row] = await database.query<{ n: number }>(
      `SELECT (SELECT count(*) FROM parley.inbox WHERE state NOT IN ('done', 'dead', 'cancelled'))::int
         + (SELECT count(*) FROM parley.outbox WHERE state IN ('pending', 'sending'))::int AS n`,
    );
    if (row?.n === 0) return;
    await delay(200);
  }
}

/** The texts that were sent before the loss and after the restore. */
function repeatedTexts({ sent }: TelegramPeer, sentBefore: number): string[] {
  const earlier = new Set(sent.slice(0, sentBefore).map(({ text }) => text));
  return sent.slice(sentBefore).flatMap(({ text }) => (earlier.has(text) ? [text] : []));
}
