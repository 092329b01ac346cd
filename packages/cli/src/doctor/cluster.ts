// Checks the running cluster: supervisor, replicas, gateway, leader, model, sandbox, versions, clock, deliveries.

import { modelTitle, type ReplicaReport } from "@parley/contracts";
import type { ReplicaState } from "@parley/local";

import type { Answer, api } from "../cluster/api.ts";
import { GatewayUnreachableError, reasonOf, RequestRejectedError } from "../cluster/gateway.ts";
import {
  type Check,
  type DoctorContext,
  error,
  type Finding,
  type Fixes,
  fixesFor,
  notRunning,
  ok,
  startFix,
  warning,
} from "./finding.ts";
import { ownVersion } from "../io/io.ts";
import { localTime } from "../tables/format.ts";

type Status = Answer<typeof api.status>;

const readyTimeoutMs = 2_000;
const maxSkewMs = 2_000;

export const clusterChecks: readonly Check[] = [
  { id: "supervisor", run: async (context) => supervisor(context) },
  { id: "ready", run: ready },
  { id: "gateway", run: gateway },
  { id: "start", run: withStatus("start", ({ replicas }, fixes) => startFindings(replicas, fixes)) },
  { id: "leader", run: withStatus("leader", ({ replicas }, fixes) => [leaderFinding(replicas, fixes)]) },
  { id: "model", run: withStatus("model", modelOf) },
  { id: "sandbox", run: withStatus("sandbox", ({ replicas }, fixes) => sandboxFindings(replicas, fixes)) },
  { id: "mcp", run: withStatus("mcp", ({ replicas }, fixes) => mcpFindings(replicas, fixes)) },
  { id: "channels", run: withStatus("channels", ({ replicas }, fixes) => channelFindings(replicas, fixes)) },
  { id: "encryption", run: withStatus("encryption", ({ replicas }) => encryptionFindings(replicas)) },
  { id: "version", run: withStatus("version", (status) => [versionFinding(status, ownVersion())]) },
  { id: "clock", run: clock },
  { id: "deliveries", run: withStatus("deliveries", (status, fixes) => deliveryFindings(status, fixes)) },
];

function modelOf({ model, replicas }: Status, fixes: Fixes): Finding[] {
  const accounts = replicas.some(({ details }) => details["channels"] !== undefined);
  return [modelFinding(model, fixes, accounts)];
}

function supervisor({ home, explicitUrl }: DoctorContext): Finding[] {
  if (explicitUrl) return [];
  if (home.state !== null) {
    const { supervisor: process, startedAt } = home.state;
    return [ok("supervisor", `pid ${process.pid}, since ${localTime(startedAt)}`)];
  }
  return [
    home.abandoned
      ? error("supervisor", "it has died; its state file remains", startFix)
      : error("supervisor", `not running on ${home.path}`, startFix),
  ];
}

async function ready({ home, explicitUrl }: DoctorContext): Promise<Finding[]> {
  if (explicitUrl) return [];
  if (home.state === null) return [notRunning("ready")];
  return Promise.all(home.state.replicas.map(readiness));
}

async function readiness({ name, healthPort, process, restarts }: ReplicaState): Promise<Finding> {
  const id = `ready.${name}`;
  const fix = `parley logs --service ${name} --since 10m`;
  const again = restarts === 0 ? "" : `, restarted ${restarts} times`;
  if (process === null || healthPort === null) return error(id, `${name} is not running${again}`, fix);
  try {
    const response = await fetch(`http://127.0.0.1:${healthPort}/readyz`, {
      signal: AbortSignal.timeout(readyTimeoutMs),
    });
    await response.text();
    return response.ok
      ? ok(id, `${name} is ready${again}`)
      : error(id, `${name} is running but not ready${again}`, fix);
  } catch (failure) {
    return error(id, `${name} does not answer: ${reasonOf(failure)}${again}`, fix);
  }
}

async function gateway(context: DoctorContext): Promise<Finding[]> {
  if (isDown(context)) return [notRunning("gateway")];
  try {
    await context.status();
    return [ok("gateway", "answers and accepts the token")];
  } catch (failure) {
    if (failure instanceof RequestRejectedError && failure.status === 401) {
      return [error("gateway", "refuses the token", "unset PARLEY_TOKEN   (or name the right file with --token-file)")];
    }
    if (failure instanceof GatewayUnreachableError) {
      return [
        error(
          "gateway",
          failure.message,
          context.explicitUrl ? "check --url" : fixesFor(false).logs("channel-gateway"),
        ),
      ];
    }
    throw failure;
  }
}

/** A check of the gateway's status; the check `gateway` reports it when there is none. */
function withStatus(id: string, judge: (status: Status, fixes: Fixes) => Finding[]): Check["run"] {
  return async (context) => {
    if (isDown(context)) return [notRunning(id)];
    let status: Status;
    try {
      status = (await context.status()).data;
    } catch {
      return [warning(id, "cannot be checked: no gateway answers", "see: gateway")];
    }
    return judge(status, fixesFor(context.explicitUrl));
  };
}

function isDown({ explicitUrl, home }: DoctorContext): boolean {
  return !explicitUrl && home.state === null;
}

/** Replicas that run but cannot work, with their reason; empty if there is none. */
export function startFindings(replicas: readonly ReplicaReport[], fixes = fixesFor(false)): Finding[] {
  return replicas.flatMap(({ service, replica, details: { waitingFor } }) =>
    typeof waitingFor === "string" ? error("start", `${replica} is not ready: ${waitingFor}`, fixes.logs(service)) : [],
  );
}

export function leaderFinding(replicas: readonly ReplicaReport[], fixes = fixesFor(false)): Finding {
  const leaders = replicas.filter(({ role }) => role === "leader");
  const [leader] = leaders;
  if (leader === undefined)
    return error(
      "leader",
      "no agent-core is the leader: messages are stored but not processed",
      fixes.logs("agent-core"),
    );
  if (leaders.length === 1) return ok("leader", `${leader.replica} is the leader, epoch ${leader.epoch ?? "?"}`);
  const names = leaders.map(({ replica }) => replica).join(", ");
  return error(
    "leader",
    `${names} all report that they are the leader; writes are fenced, so only the newest one can write`,
    "parley status --watch   (an old leader exits within seconds)",
  );
}

function keyVariable(provider: string): string {
  return provider === "openai" ? "OPENAI_API_KEY" : "ANTHROPIC_API_KEY";
}

/** `accounts`: channels are connected, on which other people get the model's answers. */
export function modelFinding(model: Status["model"], fixes = fixesFor(false), accounts = false): Finding {
  if (model === null) return error("model", "no agent-core reports its model", fixes.logs("agent-core"));
  const named = modelTitle(model);
  if (model.provider === "rehearsal") {
    const people = accounts ? "; people who write on a channel get its answers" : "";
    return warning("model", `${named}: ${model.note ?? ""}${people}`, fixes.model);
  }
  if (model.note === null) return ok("model", named);
  return /\bkey\b|auth|refus|denied|\b401\b|\b403\b/i.test(model.note)
    ? error(
        "model",
        `${named}: ${model.note}`,
        `use a valid key: ${fixes.set(`${keyVariable(model.provider)}=…`, "agent-core")}`,
      )
    : warning(
        "model",
        `${named}: ${model.note}`,
        `choose another model: ${fixes.set("PARLEY_MODEL=<model>", "agent-core")}`,
      );
}

export function sandboxFindings(replicas: readonly ReplicaReport[], fixes = fixesFor(false)): Finding[] {
  const runners = replicas.filter(({ service }) => service === "tool-runner");
  if (runners.length === 0) return [error("sandbox", "no tool-runner answers", fixes.logs("tool-runner"))];
  return runners.map(({ replica, details }) => {
    const isolation = String(details["isolation"] ?? "not reported");
    const { limits } = details;
    const message = `${replica}: ${isolation}${typeof limits === "string" ? ` (limits: ${limits})` : ""}`;
    if (isolation.startsWith("exec refused")) return warning("sandbox", message, fixes.sandbox);
    if (details["commandsReachInternet"] === true)
      return warning(
        "sandbox",
        message,
        `${fixes.set("PARLEY_EXEC_ISOLATION=auto", "tool-runner")}; docs/isolation.md`,
      );
    if (isolation.startsWith("none"))
      return warning("sandbox", message, 'isolation = "bubblewrap"   under [tools.exec] in parley.toml');
    return isolation === "not reported" ? warning("sandbox", message, "parley status --json") : ok("sandbox", message);
  });
}

/** Empty if no MCP server is configured. */
export function mcpFindings(replicas: readonly ReplicaReport[], fixes = fixesFor(false)): Finding[] {
  return replicas.flatMap(({ replica, details }) => {
    const { mcp, mcpDown } = details;
    if (mcp === undefined) return [];
    const message = `${replica}: ${String(mcp)}`;
    return mcpDown === undefined || mcpDown === 0
      ? ok("mcp", message)
      : warning("mcp", message, `fix [mcp.servers.<name>] in parley.toml, and ${fixes.restart}; docs/mcp.md`);
  });
}

/** Accounts, webhooks and observers as each gateway reports them; empty if none is configured. */
export function channelFindings(replicas: readonly ReplicaReport[], fixes = fixesFor(false)): Finding[] {
  return replicas.flatMap(({ replica, details }) => {
    const { channels, channelProblems } = details;
    if (channels === undefined) return [];
    return channelProblems === undefined
      ? ok("channels", `${replica}: ${String(channels)}`)
      : error("channels", `${replica}: ${String(channelProblems)}`, channelFix(String(channelProblems), fixes));
  });
}

/** The fix of the first account that has a problem; webhooks and observers are corrected in parley.toml. */
function channelFix(problems: string, fixes: Fixes): string {
  const [, account, reason = ""] = /(?:^|; )([a-z]\w*:[\w-]+) (?:failing|disabled)([^;]*)/.exec(problems) ?? [];
  if (account === undefined || /^(?:hook|observer):/.test(account)) {
    return `set the missing secrets, and ${fixes.restart}; ${fixes.logs("channel-gateway")}`;
  }
  return networkFailure.test(reason) ? fixes.unreachable(account) : fixes.account(account);
}

/** Another secret does not help: the platform has not seen it. */
const networkFailure =
  /ECONNREFUSED|ECONNRESET|ECONNABORTED|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|connection refused|timed out|connect timeout|fetch failed/i;

/** Which server connections use TLS, by service. */
function encryptionFindings(replicas: readonly ReplicaReport[]): Finding[] {
  const links = [
    ["busEncrypted", "bus"],
    ["redisEncrypted", "Redis"],
    ["databaseEncrypted", "PostgreSQL"],
  ] as const;
  const texts = replicas.flatMap(({ replica, details }) => {
    const known = links.filter(([field]) => details[field] !== undefined);
    const text = known.map(([field, name]) => `${name} ${details[field] === true ? "encrypted" : "not encrypted"}`);
    return text.length === 0 ? [] : `${replica}: ${text.join(", ")}`;
  });
  return texts.length === 0 ? [] : [ok("encryption", texts.join("; "))];
}

export function versionFinding({ version, replicas }: Pick<Status, "version" | "replicas">, own: string): Finding {
  const others = [...new Set([version, ...replicas.map((replica) => replica.version)])].filter((each) => each !== own);
  return others.length === 0
    ? ok("version", `${own} everywhere`)
    : warning(
        "version",
        `this parley is ${own}, the cluster ${others.join(" and ")}`,
        "use the parley version of the cluster, or restart the cluster",
      );
}

export function clockFinding(skewMs: number | null): Finding {
  if (skewMs === null) return ok("clock", "the gateway's responses have no Date header");
  const seconds = (Math.abs(skewMs) / 1_000).toFixed(1);
  if (Math.abs(skewMs) < maxSkewMs) return ok("clock", `within ${(maxSkewMs / 1_000).toFixed(0)} s of the gateway's`);
  return warning(
    "clock",
    `this clock is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} the gateway's`,
    "synchronise both clocks with NTP: timedatectl set-ntp true",
  );
}

async function clock(context: DoctorContext): Promise<Finding[]> {
  if (isDown(context)) return [notRunning("clock")];
  try {
    return [clockFinding((await context.status()).clockSkewMs)];
  } catch {
    return [warning("clock", "cannot be checked: no gateway answers", "see: gateway")];
  }
}

/** Empty if the gateway does not count them. */
export function deliveryFindings(
  { outbox, inbox }: Pick<Status, "outbox" | "inbox">,
  fixes = fixesFor(false),
): Finding[] {
  const unknown = outbox?.["unknown"] ?? 0;
  const dead = inbox?.["dead"] ?? 0;
  if (outbox === undefined && inbox === undefined) return [];
  const findings: Finding[] = [];
  if (unknown > 0)
    findings.push(
      warning(
        "deliveries",
        `${unknown} texts may or may not have arrived; they are not sent again automatically`,
        "ask the recipients, or send the texts again with parley send",
      ),
    );
  if (dead > 0) findings.push(warning("deliveries", `${dead} messages were dead-lettered`, fixes.logs()));
  return findings.length === 0 ? [ok("deliveries", "none unknown, none dead-lettered")] : findings;
}
