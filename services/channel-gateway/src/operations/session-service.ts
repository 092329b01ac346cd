// Session operations shared by commands, the HTTP API and WebSocket frames. Each delegates to the store or the leader.
import { randomUUID } from "node:crypto";
import type { Bus } from "@parley/bus";
import {
  controlCompact,
  controlModels,
  controlSessionEnded,
  store,
  WireError,
  type InputOf,
  type OutputOf,
  type ParleySettings,
  type PermissionMode,
  type SessionSummary,
} from "@parley/contracts";
import { nameUuid } from "@parley/kit";
import type { SessionDirectory } from "../live/session-directory.ts";

export interface SessionServiceDeps {
  bus: Bus;
  sessions: SessionDirectory;
  settings: ParleySettings;
}

/** How long the leader may take to answer from memory. */
const controlTimeoutMs = 2_000;
/** Long enough for a model call with its retries. */
const compactTimeoutMs = 5 * 60_000;

type Overrides = NonNullable<InputOf<typeof store.sessionUpdate>["overrides"]>;
type EndReason = InputOf<typeof controlSessionEnded>["reason"];

/** Thrown when no replica of the required service responds. */
export class ServiceUnavailableError extends Error {
  override readonly name = "ServiceUnavailableError";
}

/** Awaits an answer of a service other than the store. Throws ServiceUnavailableError when no replica responds. */
export async function awaitService<T>(service: string, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (!WireError.is(error, "UNAVAILABLE", "TIMEOUT")) throw error;
    throw new ServiceUnavailableError(`no ${service} is responding; try again in a moment`, { cause: error });
  }
}

export class SessionService {
  readonly #deps: SessionServiceDeps;

  constructor(deps: SessionServiceDeps) {
    this.#deps = deps;
  }

  /** Returns the session of a route, and creates it when there is none. `ref` identifies the request. */
  async ensure(route: string, ref: string): Promise<SessionSummary> {
    const { bus, sessions } = this.#deps;
    const found = await sessions.find(route);
    if (found !== null) return found;
    const { session } = await bus.request(store.sessionOpen, { opId: nameUuid(`ensure:${ref}`), route });
    sessions.take(route, session);
    return session;
  }

  /** Opens a new session for a route. */
  async open(
    route: string,
    what: { title?: string | undefined; archive: boolean },
    ref: string,
  ): Promise<OutputOf<typeof store.sessionOpen>> {
    const { bus, sessions } = this.#deps;
    const { title, archive } = what;
    const opened = await bus.request(store.sessionOpen, {
      opId: nameUuid(`open:${ref}`),
      route,
      archive,
      ...(title === undefined ? {} : { title }),
    });
    sessions.take(route, opened.session);
    if (opened.previousId !== null) this.#ended(opened.previousId, archive ? "archived" : "clear");
    return opened;
  }

  /** Binds a route to an existing session. */
  async resume(route: string, session: string): Promise<OutputOf<typeof store.sessionBind>> {
    const { bus, sessions } = this.#deps;
    const bound = await bus.request(store.sessionBind, { route, session });
    if (bound.outcome === "found") {
      sessions.take(route, bound.session);
      if (bound.previousId !== null) this.#ended(bound.previousId, "switched");
    }
    return bound;
  }

  /** Copies a session; `route` is bound to the copy. */
  async fork(
    sessionId: string,
    what: { route?: string | undefined; title?: string | undefined; atSeq?: number | undefined },
    ref: string,
  ): Promise<SessionSummary> {
    const { bus, sessions } = this.#deps;
    const { route, title, atSeq } = what;
    const { session } = await bus.request(store.sessionFork, {
      opId: nameUuid(`fork:${ref}`),
      sessionId,
      ...(route === undefined ? {} : { route }),
      ...(title === undefined ? {} : { title }),
      ...(atSeq === undefined ? {} : { atSeq }),
    });
    if (route !== undefined) {
      sessions.take(route, session);
      this.#ended(sessionId, "switched");
    }
    return session;
  }

  /** Archives a session, or restores it. */
  async archive(sessionId: string, archived: boolean): Promise<SessionSummary> {
    const status = archived ? "archived" : "active";
    const { session } = await this.#deps.bus.request(store.sessionUpdate, { opId: randomUUID(), sessionId, status });
    if (archived) this.#ended(sessionId, "archived");
    return existing(session, sessionId);
  }

  async rename(sessionId: string, title: string): Promise<SessionSummary> {
    const { session } = await this.#deps.bus.request(store.sessionUpdate, { opId: randomUUID(), sessionId, title });
    return existing(session, sessionId);
  }

  /** Changes the overrides of one session. Throws INVALID_INPUT for an unknown model or workspace, or a mode that is not allowed. */
  async override(sessionId: string, overrides: Overrides): Promise<SessionSummary> {
    const { bus, sessions } = this.#deps;
    if (overrides.permissionMode !== undefined && overrides.permissionMode !== null) {
      this.#refuseMode(overrides.permissionMode);
    }
    if (overrides.model !== undefined && overrides.model !== null) await this.#refuseModel(overrides.model);
    for (const model of overrides.fallbackModels ?? []) await this.#refuseModel(model);
    if (overrides.workspace !== undefined && overrides.workspace !== null) this.#refuseFolder(overrides.workspace);
    for (const { model } of Object.values(overrides.programAgents ?? {})) {
      if (model !== undefined) await this.#refuseModel(model);
    }
    const { session } = await bus.request(store.sessionUpdate, { opId: randomUUID(), sessionId, overrides });
    sessions.changed(sessionId);
    return existing(session, sessionId);
  }

  /** Throws ServiceUnavailableError when no agent-core responds. */
  compact(sessionId: string, instructions: string | undefined): Promise<OutputOf<typeof controlCompact>> {
    const order = { sessionId, ...(instructions === undefined ? {} : { instructions }) };
    return awaitService("agent-core", this.#deps.bus.request(controlCompact, order, { timeoutMs: compactTimeoutMs }));
  }

  /** Returns the configured model; null when no agent-core responds. */
  model(): Promise<OutputOf<typeof controlModels> | null> {
    return this.#deps.bus.request(controlModels, {}, { timeoutMs: controlTimeoutMs / 2 }).catch(() => null);
  }

  #refuseMode(mode: PermissionMode): void {
    if (mode !== "bypass" || this.#deps.settings.permissions.allow_bypass) return;
    throw new WireError(
      "INVALID_INPUT",
      'the mode "bypass" is not allowed; set [permissions] allow_bypass = true in parley.toml to allow it',
    );
  }

  #refuseFolder(name: string): void {
    const names = Object.keys(this.#deps.settings.workspace.folders);
    if (names.includes(name)) return;
    const known =
      names.length === 0 ? "[workspace.folders] in parley.toml names none" : `there are ${names.join(", ")}`;
    throw new WireError("INVALID_INPUT", `there is no workspace "${name}"; ${known}`);
  }

  async #refuseModel(name: string): Promise<void> {
    await awaitService("agent-core", this.#deps.bus.request(controlModels, { name }, { timeoutMs: controlTimeoutMs }));
  }

  /** Best effort: only hooks depend on this notification. */
  #ended(sessionId: string, reason: EndReason): void {
    this.#deps.bus
      .request(controlSessionEnded, { sessionId, reason }, { timeoutMs: controlTimeoutMs })
      .catch(() => undefined);
  }
}

export function existing(session: SessionSummary | null, sessionId: string): SessionSummary {
  if (session === null) throw new WireError("NOT_FOUND", `there is no session "${sessionId}"`);
  return session;
}
