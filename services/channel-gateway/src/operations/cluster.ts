// The deployment: its state, the model, usage, deliveries and contacts; and the commands about commands.
import { gatherUntil } from "@parley/bus";
import {
  controlModelRequest,
  controlModels,
  healthReports,
  operations,
  slashCommands,
  store,
  toolCatalog,
  type OperationOutput,
  type ReplicaReport,
} from "@parley/contracts";
import { admitWithCode } from "./people.ts";
import { version } from "@parley/chassis";
import { accessRules, maySee } from "./access.ts";
import { settingRows } from "./setting-rows.ts";
import { implement, UsageError, type OperationCall, type Speaker } from "./operation.ts";

/** How long the replicas of a service have to report their status; the second time applies when none did. */
const reportMs = [250, 1_000];
const statusModelMs = 500;
/** Timeout for services that answer from memory. */
const agentMs = 1_000;
/** Timeout for a request that is built again: a long session's log is read. */
const rebuildMs = 10_000;
const dayMs = 86_400_000;

type SentRequest = NonNullable<OperationOutput<typeof operations.turnsRequest>["request"]>;

/** `Ann (42)`; the id alone for a person without a name of their own. */
function personName({ id, name }: Speaker["contact"]): string {
  return name === undefined || name === id ? id : `${name} (${id})`;
}

function helpText(speaker: Speaker, about: string | undefined): string {
  if (about === undefined) {
    const lines = slashCommands
      .filter(({ name }) => maySee(name, speaker))
      .map(({ usage, summary }) => `${usage}\n    ${summary}`);
    return `Commands:\n${lines.join("\n")}\nAll other text goes to the agent. To send text that begins with a slash, put a space before it.`;
  }
  const name = about.startsWith("/") ? about : `/${about}`;
  const command = slashCommands.find((each) => each.name === name);
  if (command === undefined) throw new UsageError(`Unknown command ${name}.`);
  const rows = accessRules.filter((row) => row.command === name);
  const ownerOnly = rows.every(({ direct, group }) => direct === "owner" && group === "owner");
  return `${command.usage}\n${command.summary}${ownerOnly ? " (owner only)" : ""}`;
}

/** What somebody reads who writes to the agent for the first time. It needs no model call. */
async function greetingText({ speaker, deps }: OperationCall): Promise<string> {
  const model = await deps.acts.model();
  const useful = slashCommands.filter(({ name }) => greeted.has(name) && maySee(name, speaker));
  const isRehearsal = model?.provider === "rehearsal";
  return [
    "Hello, I am an AI agent. Write to me as you would to a person: ask a question, or tell me what to do.",
    ...(isRehearsal
      ? ["No language model is set up yet: a built-in rehearsal model answers, without understanding."]
      : []),
    ...useful.map(({ name, summary }) => `${name}: ${summary}`),
  ].join("\n");
}

/** The commands that a greeting names. */
const greeted = new Set(["/help", "/new", "/stop", "/status"]);

function byServiceAndName(a: ReplicaReport, b: ReplicaReport): number {
  return a.service.localeCompare(b.service) || a.replica.localeCompare(b.replica);
}

export const clusterOperations = [
  implement(operations.commandsHelp, ({ command }, { speaker }) => helpText(speaker, command)),

  implement(operations.commandsStart, (_input, call) => greetingText(call)),

  implement(operations.commandsList, () => ({
    commands: slashCommands.map(({ name, usage, summary }) => ({ name, usage, summary })),
  })),

  implement(operations.contactsSelf, (_input, { speaker, deps }) =>
    [
      `You are ${personName(speaker.contact)}, with the role ${speaker.role}.`,
      `Channel ${speaker.channel}, account ${speaker.account}, conversation ${speaker.conversation}.`,
      `Session key: ${speaker.route} (policy ${deps.settings.session.policy}), unless you switched to another session.`,
    ].join("\n"),
  ),

  implement(operations.clusterStatus, async (_input, { deps: { bus } }) => {
    const [model, ...reports] = await Promise.all([
      bus.request(controlModels, {}, { timeoutMs: statusModelMs }).catch(() => null),
      ...Object.values(healthReports).map((report) => {
        const gather = (waitMs: number): Promise<ReplicaReport[]> => bus.gather(report, {}, waitMs);
        return gatherUntil(reportMs, gather, (reports) => reports.length > 0);
      }),
    ]);
    return { version, model, replicas: reports.flat().toSorted(byServiceAndName) };
  }),

  implement(operations.agentGet, async ({ session: idOrKey }, call) => {
    const { bus, settings } = call.deps;
    const [session, model, catalog] = await Promise.all([
      idOrKey === undefined ? null : call.session(idOrKey),
      bus.request(controlModels, { summaries: true }, { timeoutMs: agentMs }).catch(() => null),
      bus.request(toolCatalog, {}, { timeoutMs: agentMs }).catch(() => null),
    ]);
    const own = session?.overrides.model;
    return {
      version,
      model: model === null ? null : { provider: model.provider, model: own ?? model.model },
      tools: model?.tools ?? [],
      toolSummaries: model?.summaries ?? {},
      mcpServers: Object.keys(settings.mcp.servers),
      permissionMode: session?.overrides.permissionMode ?? settings.permissions.mode,
      workspace: catalog?.isolation ?? null,
      profiles: [...new Set(["reader", ...Object.keys(settings.profiles)])],
    };
  }),

  implement(operations.usageGet, async ({ days, session, by }, call) => {
    const of = session === undefined ? {} : { sessionId: (await call.session(session)).sessionId };
    const sinceDay = new Date(Date.now() - (days - 1) * dayMs).toISOString().slice(0, 10);
    return call.deps.bus.request(store.usageReport, { sinceDay, ...of, ...(by === undefined ? {} : { by }) });
  }),

  implement(operations.messagesGet, async ({ id }, { deps }) => ({
    messageId: id,
    ...(await deps.bus.request(store.inboxGet, { inboxId: id })),
  })),

  implement(operations.turnsGet, ({ id }, { deps }) => deps.bus.request(store.turnGet, { turnId: id })),

  implement(operations.turnsTrace, ({ id }, { deps }) =>
    deps.bus.request(store.turnTrace, { turnId: id === "last" ? null : id }),
  ),

  implement(operations.turnsRequest, async ({ id, step }, { deps }) => {
    const read = (offset: number) =>
      deps.bus.request(controlModelRequest, { turnId: id, step, offset }, { timeoutMs: rebuildMs });
    const { model, exact, note, text: first, length } = await read(0);
    if (first === null) return { model, exact, note, request: null };
    let text = first;
    while (text.length < length) {
      const { text: part } = await read(text.length);
      if (part === null || part === "") break;
      text += part;
    }
    return { model, exact, note, request: JSON.parse(text) as SentRequest };
  }),

  implement(operations.settingsGet, (_input, { deps }) => ({
    settings: settingRows(deps.settings, deps.originOf),
    problems: deps.checkSettings(),
  })),

  implement(operations.deliveriesSend, ({ channel, account, conversation, text, expiresInMs }, call) => {
    const address = { channel, account, conversation };
    call.deps.channels.require(address);
    const outgoing = { address, text, expiresInMs };
    return call.deps.bus.request(store.outboxPut, { opId: call.operationId("send"), outgoing });
  }),

  implement(operations.deliveriesGet, ({ id }, { deps }) => deps.bus.request(store.outboxGet, { outboxId: id })),

  implement(operations.pairingsList, (_input, { deps }) => deps.bus.request(store.pairingList, {})),

  implement(operations.pairingsApprove, admitWithCode),
];
