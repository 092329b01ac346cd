// npm run chaos -- [--trials 200] [--only NAME]: injects faults into a real cluster and accounts for every message.
// npm run chaos -- --leases SECONDS | --takeovers COUNT [--platforms NAME,NAME]: instead kills, pauses, drains, adds and removes gateways that
//   share 24 accounts of seven platforms; with --takeovers it only kills, until each platform has had as many takeovers.
// npm run chaos -- --upgrade COMMIT [--dwell SECONDS] [--rate MESSAGES]: instead upgrades a cluster from a commit to this tree, and back,
//   while messages arrive; --upgrade previous: from the newest tag, or else the commit before.
// npm run chaos -- --scenes [NAME…] [--rate MESSAGES] [--duration-seconds SECONDS]: instead plays scenes (rollouts, kills, network cuts,
//   restarts of servers, scaling) under a constant load; a name is the beginning of names of scenes, such as `rollout`.
// npm run chaos -- --backup MEGABYTES [--rate MESSAGES]: instead takes a backup of so much data under load, loses everything and restores it.
// npm run chaos -- --storm: instead sends 1,000 texts of an account that Telegram limits, next to two that it does not, from four gateways.
// npm run chaos -- --callers: instead runs 200 concurrent callers under every preset and queue mode.
import { parseArgs } from "node:util";
import { runBackup } from "./backup.ts";
import { runCallers } from "./callers.ts";
import { runLeases } from "./leases.ts";
import { startProcessCluster } from "./load/process-target.ts";
import { describeScene, runLoadScenes } from "./load/run.ts";
import { chooseScenes } from "./load/scenes.ts";
import { run, type Account } from "./run.ts";
import { runStorm } from "./storm.ts";
import { runUpgrade } from "./upgrade.ts";
import { olderVersion, previousRef } from "./versions.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    trials: { type: "string", default: "200" },
    only: { type: "string" },
    callers: { type: "boolean" },
    storm: { type: "boolean" },
    leases: { type: "string" },
    platforms: { type: "string" },
    takeovers: { type: "string" },
    upgrade: { type: "string" },
    dwell: { type: "string", default: "20" },
    rate: { type: "string" },
    scenes: { type: "boolean" },
    backup: { type: "string" },
    "duration-seconds": { type: "string", default: "300" },
  },
});
if (values.leases !== undefined || values.takeovers !== undefined) {
  const options = {
    seconds: Number(values.leases ?? 0),
    platforms: values.platforms?.split(","),
    takeovers: values.takeovers === undefined ? undefined : Number(values.takeovers),
  };
  const { problems, messages, faults, idlePerSecond, takeovers, unknown } = await runLeases(options, (line) =>
    console.log(line),
  );
  for (const problem of problems) console.log(problem);
  const at = (part: number) => Math.round(takeovers[Math.floor((takeovers.length - 1) * part)]?.durationMs ?? 0);
  const counts = Object.entries(Object.groupBy(takeovers, ({ channel }) => channel)).map(
    ([channel, some]) => `${channel} ${some?.length ?? 0}`,
  );
  console.log(
    `messages ${messages}, faults ${faults}, problems ${problems.length}, unknown sends ${unknown}, ` +
      `idle ${idlePerSecond} requests/s, takeover p50 ${at(0.5)} ms, p95 ${at(0.95)} ms (${takeovers.length} leases: ${counts.join(", ")})`,
  );
  process.exit(problems.length === 0 ? 0 : 1);
}
if (values.upgrade !== undefined) {
  const from = await olderVersion(values.upgrade === "previous" ? previousRef() : values.upgrade);
  const options = { from, dwellSeconds: Number(values.dwell), rate: Number(values.rate ?? 5) };
  const begin = performance.now();
  const result = await runUpgrade({
    ...options,
    report: (line) => console.log(`${Math.round((performance.now() - begin) / 1_000)} s: ${line}`),
  });
  for (const problem of result.problems) console.log(problem);
  console.log(
    `messages ${result.messages}, trials ${result.trials}, problems ${result.problems.length}, stale writes ${result.staleWrites}, ` +
      `unknown sends ${result.unknown}, repeated requests ${result.repeated}, longest gap ${result.longestGapMs} ms`,
  );
  process.exit(result.problems.length === 0 && result.staleWrites === 0 ? 0 : 1);
}
if (values.scenes === true) {
  const problems = await runLoadScenes({
    open: startProcessCluster,
    scenes: chooseScenes(positionals),
    rate: Number(values.rate ?? 20),
    durationSeconds: Number(values["duration-seconds"]),
    report: (result) => console.log(describeScene(result)),
    skip: ({ name }, reason) => console.log(`${name}: not played: ${reason}`),
  });
  for (const problem of problems) console.log(problem);
  process.exit(problems.length === 0 ? 0 : 1);
}
if (values.backup !== undefined) {
  const result = await runBackup({
    megabytes: Number(values.backup),
    rate: Number(values.rate ?? 10),
    report: (line) => console.log(line),
  });
  for (const problem of result.problems) console.log(problem);
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  console.log(
    `messages ${result.messages}, problems ${result.problems.length}, backup ${seconds(result.backupMs)} s, ` +
      `restore ${seconds(result.restoreMs)} s, repeated because unanswered at the moment of the backup ${result.repeated}`,
  );
  process.exit(result.problems.length === 0 ? 0 : 1);
}
if (values.callers === true) {
  const problems = await runCallers((line) => console.log(line));
  process.exit(problems.length === 0 ? 0 : 1);
}
if (values.storm === true) {
  const problems = await runStorm((line) => console.log(line));
  for (const problem of problems) console.log(problem);
  process.exit(problems.length === 0 ? 0 : 1);
}
const trials = Number(values.trials);

const report =
  (prefix: string) =>
  (
    result: { fault: string; durationMs: number; lost: string[]; doubled: string[]; takeoverMs: number | undefined },
    number: number,
  ) => {
    const bad = [...result.lost, ...result.doubled];
    const takeover = result.takeoverMs === undefined ? "" : `, takeover ${Math.round(result.takeoverMs)} ms`;
    console.log(
      `${prefix}${number} ${result.fault}: ${bad.length === 0 ? "ok" : bad.join("; ")} (${Math.round(result.durationMs)} ms${takeover})`,
    );
  };

// The last tenth also loses 30 % of all hints.
const harsh = Math.floor(trials / 10);
const only = values.only === undefined ? {} : { only: values.only };
const accounts = [await run({ trials: trials - harsh, dropHints: 0, ...only, report: report("") })];
if (harsh > 0)
  accounts.push(await run({ trials: harsh, dropHints: 0.3, ...only, report: report("30 % of hints lost, ") }));

const sum = (pick: (account: Account) => number) => accounts.reduce((total, account) => total + pick(account), 0);
const problems = accounts.flatMap((account) => [
  ...account.lost.map((what) => `lost: ${what}`),
  ...account.doubled.map((what) => `doubled: ${what}`),
  ...account.violations.map(({ invariant, what }) => `${invariant}: ${what}`),
]);
for (const problem of problems) console.log(problem);
const takeover = accounts[0]?.takeoverMs;
console.log(
  `trials ${sum((account) => account.trials)}, lost ${sum((account) => account.lost.length)}, doubled ${sum((account) => account.doubled.length)}, ` +
    `stale writes ${sum((account) => account.staleWrites)}, unknown sends ${sum((account) => account.unknown)}, ` +
    `takeover p50 ${takeover?.p50} ms, p95 ${takeover?.p95} ms (${takeover?.count} takeovers)`,
);
process.exit(problems.length === 0 ? 0 : 1);
