// Calls speech-to-text MCP servers through the tool-runners.
import type { Bus } from "@parley/bus";
import { voiceCall, voiceServers, WireError, type SttTool, type VoiceSettings } from "@parley/contracts";
import { chooseServer, type SttServer } from "./choose-server.ts";

/** How long to wait for the tool-runners' lists of servers. */
const gatherMs = 500;
/** Added to a call's own timeout, so that a tool-runner can still report the reason of a timeout. */
const graceMs = 2_000;

/** Thrown if a server returned no usable response; the message contains the reason. */
export class SttError extends Error {
  override readonly name = "SttError";
}

/** The location of a session: its server and tool-runner; `runner` is null if every tool-runner reaches the server. */
export interface SttPlace {
  server: string;
  runner: string | null;
}

export class Stt {
  readonly #bus: Bus;
  readonly #epoch: number;
  /** For servers that every tool-runner reaches: the tool-runner of the last successful call. */
  readonly #reached = new Map<string, string>();
  readonly settings: VoiceSettings;

  constructor(bus: Bus, epoch: number, settings: VoiceSettings) {
    this.#bus = bus;
    this.#epoch = epoch;
    this.settings = settings;
  }

  /** The server, or why there is none. */
  async find(): Promise<SttServer | { problem: string }> {
    return chooseServer(await this.#bus.gather(voiceServers, {}, gatherMs), this.settings);
  }

  /** Throws SttError, or CANCELLED when the signal aborts. */
  async call(
    place: SttPlace,
    tool: SttTool,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const replica = place.runner ?? this.#reached.get(place.server) ?? (await this.#anyWith(place.server));
    const timeoutMs = this.settings.call_timeout_seconds * 1_000;
    const order = { epoch: this.#epoch, server: place.server, tool, arguments: args, timeoutMs };
    try {
      const options = { params: { replica }, timeoutMs: timeoutMs + graceMs, signal };
      const answer = await this.#bus.request(voiceCall, order, options);
      if (answer.outcome === "failed") throw new SttError(answer.problem);
      this.#reached.set(place.server, replica);
      return answer.value;
    } catch (error) {
      this.#reached.delete(place.server);
      if (!WireError.is(error) || error.code === "CANCELLED") throw error;
      throw new SttError(reasonOf(error), { cause: error });
    }
  }

  async #anyWith(server: string): Promise<string> {
    const runners = await this.#bus.gather(voiceServers, {}, gatherMs);
    const found = runners.find(({ servers }) => servers.some((each) => each.server === server));
    if (found === undefined) throw new SttError(`no tool-runner is connected to the MCP server ${server}`);
    return found.runner;
  }
}

function reasonOf(error: WireError): string {
  if (error.code === "UNAVAILABLE" || error.code === "TIMEOUT") return "its tool-runner does not respond";
  return error.message;
}
