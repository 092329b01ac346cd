// Prepares a turn: its policy, its tools, and the prefix that its model receives.
import type { ClaimedTurn, ContactRole, SessionState } from "@parley/contracts";
import { guestRules, guestsHave, roleOf } from "../policy/workspace-access.ts";
import { assemblePrompt } from "../prompt/assemble.ts";
import { versionsOf } from "../prompt/document-cache.ts";
import { documentNotes } from "../prompt/document-notes.ts";
import type { Audience } from "../prompt/documents.ts";
import type { PromptSources } from "../prompt/sources.ts";
import type { LocalTool } from "../tools/local-tool.ts";
import type { Catalog, ToolCatalog } from "../tools/catalog.ts";
import { showsSource } from "../prompt/message-header.ts";
import { mainPolicy, resolvePolicy, type TurnPolicy } from "../policy/turn-policy.ts";
import { mayRenew, prefixOf, type Prefix } from "../session/prefix.ts";
import { markKnown, sameVersions, knownVersions } from "../prompt/known-documents.ts";
import { isProgramTool, withProgram } from "../tools/program-tools.ts";
import { programAgentsIn } from "../tools/spawn.ts";
import { calledNames, Toolbox } from "../tools/toolbox.ts";
import { audienceOf, mergeTaint, taintOf } from "../policy/taint.ts";
import { messagesBeforeView } from "../session/refresh-view.ts";
import { messagesOf, releasedMessages } from "../session/log-records.ts";
import type { TurnDeps, TurnStart } from "./dependencies.ts";
import type { SessionView } from "../session/view.ts";

interface Reader {
  claimed: ClaimedTurn;
  session: SessionState;
  view: SessionView;
  toolbox: Toolbox;
  audience: Audience;
}

export class TurnPreparer {
  readonly #deps: TurnDeps;
  readonly #catalog: ToolCatalog;
  readonly #sources: PromptSources;
  readonly #local: readonly LocalTool[];
  readonly #toolboxes = new Map<string, { catalog: Catalog; toolbox: Toolbox }>();

  constructor(deps: TurnDeps, catalog: ToolCatalog, sources: PromptSources, local: readonly LocalTool[]) {
    this.#deps = deps;
    this.#catalog = catalog;
    this.#sources = sources;
    this.#local = local;
  }

  async prepare(
    claimed: ClaimedTurn,
    session: SessionState,
    view: SessionView,
    steerable: boolean,
  ): Promise<TurnStart> {
    const policy = resolvePolicy(this.#deps.settings, session);
    const toolbox = await this.toolboxFor(session, claimed.root);
    const earlier = await messagesBeforeView(this.#deps.leaderStore, claimed, view);
    const hidden = taintOf(earlier, toolbox);
    const shown = taintOf(messagesOf(claimed.turnId, view.messages), toolbox);
    const reader = { claimed, session, view, toolbox, audience: audienceOf(claimed, mergeTaint(hidden, shown)) };
    const assemble = (now: TurnPolicy, audience: Audience) => this.#assemble(now, { ...reader, audience });
    const fresh = await assemble(policy, reader.audience);
    const kept = session.prefixHash === null ? undefined : await this.#kept(session.prefixHash, fresh, view);
    const prefix = kept !== undefined && this.#fits(kept, fresh, toolbox, roleOf(claimed.root.trust)) ? kept : fresh;
    return {
      claimed,
      session,
      view,
      toolbox,
      prefix,
      newPrefix: prefix.hash !== session.prefixHash,
      earlier: releasedMessages(earlier),
      hidden,
      assemble,
      steerable,
      news: await this.#news(policy, prefix, reader),
    };
  }

  /**
   * The tools of a session: for the turn with this root, or all of them without a root. Waits a few seconds for a
   * tool-runner if none has responded yet.
   */
  async toolboxFor(session: SessionState, root?: ClaimedTurn["root"]): Promise<Toolbox> {
    return this.#toolboxOf(await this.#catalog.tools(), resolvePolicy(this.#deps.settings, session), session, root);
  }

  /**
   * Tools depend on the catalog, the profile, the guest rules, the program's tools, on being a sub-agent and on being one at the maximum
   * depth: turns with the same values share a toolbox.
   */
  #toolboxOf(
    catalog: Catalog,
    policy: TurnPolicy,
    { profile, parentId, overrides }: SessionState,
    root: ClaimedTurn["root"] | undefined,
  ): Toolbox {
    const { settings } = this.#deps;
    const isOfProgram = (overrides.programTools ?? overrides.programAgents ?? overrides.programAgent) !== undefined;
    const allowed = root !== undefined && roleOf(root.trust) === "guest" ? guestRules(settings, root) : null;
    const isDeepest = policy.depth >= settings.subagents.max_depth;
    const key = JSON.stringify([profile, parentId === null, isDeepest, allowed]);
    const known = this.#toolboxes.get(key);
    if (known?.catalog === catalog && !isOfProgram) return known.toolbox;
    const had = allowed === null ? catalog.tools : catalog.tools.filter((tool) => guestsHave(tool, allowed));
    const local =
      isOfProgram && allowed === null
        ? withProgram(this.#local, overrides, new Set(had.map(({ name }) => name)), settings)
        : this.#local;
    const toolbox = new Toolbox(had, catalog.containment, local, policy, settings.tools);
    // Other sessions have other programs, and a sub-agent of one may have the name of a profile.
    if (!isOfProgram) this.#toolboxes.set(key, { catalog, toolbox });
    return toolbox;
  }

  /** Names of the tools that the agent itself has, from the last catalog, sorted; on request with a line on each. */
  toolNames(withSummaries: boolean): { tools: string[]; summaries?: Record<string, string> } {
    const { settings } = this.#deps;
    const { tools, containment } = this.#catalog.known();
    const { descriptors } = new Toolbox(tools, containment, this.#local, mainPolicy(settings), settings.tools);
    const summaries = Object.fromEntries(descriptors.map(({ name, summary }) => [name, summary]));
    return { tools: Object.keys(summaries), ...(withSummaries ? { summaries } : {}) };
  }

  /** The session's stored prefix, unless it may take the new one. */
  async #kept(hashed: string, fresh: Prefix, view: SessionView): Promise<Prefix | undefined> {
    if (hashed === fresh.hash || mayRenew(view, Date.now())) return fresh;
    return this.#deps.model.prefixes.load(hashed);
  }

  /**
   * Whether a session's stored prefix shows the tools that this turn's role may use, and the documents that its audience
   * may read: in a group or a shared thread, turns of the owner and of others alternate. Tool lists that differ for
   * another reason stay as they are.
   */
  #fits(kept: Prefix, fresh: Prefix, toolbox: Toolbox, role: ContactRole): boolean {
    if ((kept.audience ?? "owner") !== fresh.audience) return false;
    const { guest_allow: guestAllow } = this.#deps.settings.permissions;
    const ofOthers = ({ tools }: Prefix) => tools.filter((tool) => !guestsHave(tool, guestAllow));
    const shown = ofOthers(kept);
    // A program that continues a session may define other tools and sub-agents than the one before.
    if (!toolbox.defers && programPart(kept) !== programPart(fresh)) return false;
    if (role === "guest") return shown.length === 0;
    return shown.length > 0 || ofOthers(fresh).length === 0 || toolbox.defers;
  }

  async #assemble(policy: TurnPolicy, reader: Reader): Promise<Prefix> {
    const { settings } = this.#deps;
    const { documents, skills } = await this.#sources.current();
    const system = assemblePrompt({
      ...selectionOf(policy, reader, settings.context.daily_notes),
      custom: policy.systemPrompt,
      output: policy.output,
      sourceTags: showsSource(settings, policy, reader.claimed.sessionKey),
      tools: reader.toolbox.descriptors.map((tool) => tool.name),
      documents,
      skills,
      runtime: {
        agent: policy.profile ?? "parley",
        model: this.#deps.model.models.main.model,
        timeZone: settings.agent.time_zone,
      },
      context: settings.context,
    });
    const { toolbox, view } = reader;
    const shown = toolbox.shown(toolbox.defers ? calledNames(view.messages) : new Set());
    return prefixOf(system, shown, versionsOf(documents), reader.audience);
  }

  /** What has changed in the documents since the versions the model knows; null: nothing that it is shown. */
  async #news(policy: TurnPolicy, prefix: Prefix, reader: Reader): Promise<string | null> {
    const { view, toolbox } = reader;
    const { documents } = await this.#sources.current();
    const known = knownVersions(prefix.told, view.messages);
    const now = versionsOf(documents);
    if (sameVersions(known, now)) return null;
    const turnIds = new Set(view.messages.map((message) => message.turnId));
    const note = documentNotes({
      ...selectionOf(policy, reader, this.#deps.settings.context.daily_notes),
      before: await this.#sources.documents.at(known),
      after: documents,
      isOwnTurn: (turnId) => turnIds.has(turnId),
      canRead: toolbox.find("read") !== undefined,
      context: this.#deps.settings.context,
    });
    return note === null ? null : markKnown(note, now);
  }
}

/** What a prefix shows of the program: its tools and its sub-agents. */
function programPart({ tools }: Prefix): string {
  const shown = tools.map((tool) => (isProgramTool(tool.description) ? tool : programAgentsIn(tool.description)));
  return JSON.stringify(shown.filter((each) => each !== ""));
}

function selectionOf(policy: TurnPolicy, { claimed, audience }: Reader, dailyNotes: boolean) {
  return {
    mode: policy.prompt,
    audience,
    dailyNotes: dailyNotes ? lastDays(claimed.startedAt) : [],
  };
}

/** Today and yesterday in UTC, as daily notes are named. */
function lastDays(at: string): string[] {
  const dayMs = 24 * 60 * 60 * 1000;
  return [0, 1].map((back) => new Date(Date.parse(at) - back * dayMs).toISOString().slice(0, 10));
}
