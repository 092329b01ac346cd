// An agent's account on a real homeserver with its adapter, for adapter tests.
import { matrixChannel } from "@parley/contracts";
import type { MatrixPerson, Synapse } from "@parley/testing";
import type { ChannelAdapter, LeaseRef } from "../../src/channels/channel.ts";
import { createMatrix } from "../../src/channels/matrix/index.ts";
import { TestHost } from "./channel-host.ts";

export class MatrixAgent implements AsyncDisposable {
  readonly account: MatrixPerson;
  readonly adapter: ChannelAdapter;
  readonly host = new TestHost();
  #connection: { lose: () => void; ended: Promise<unknown> } | null = null;

  private constructor(account: MatrixPerson, adapter: ChannelAdapter) {
    this.account = account;
    this.adapter = adapter;
  }

  /** Registers an account; `people` are settings. It is connected when this resolves. */
  static async open(synapse: Synapse, name: string, people: object, homeserver = synapse.url): Promise<MatrixAgent> {
    const account = await synapse.person(name);
    const settings = matrixChannel.settings.parse({ homeserver, token_env: "PARLEY_CHANNEL_M", ...people });
    const agent = new MatrixAgent(account, createMatrix("main", settings, account.token));
    await agent.connect();
    return agent;
  }

  get userId(): string {
    return this.account.userId;
  }

  /** Connects with the saved cursor. */
  async connect(): Promise<LeaseRef> {
    const { lease, lose } = this.host.lease();
    const count = this.host.reported.length;
    const ended = this.adapter.connect?.(this.host, lease).catch((error: unknown) => error) ?? Promise.resolve();
    this.#connection = { lose, ended };
    await Promise.race([ended, this.host.until("a connection", () => this.host.reported.length > count || null)]);
    await this.host.until("a cursor", () => this.host.cursor);
    return lease;
  }

  /** Ends the connection as a lost lease does; resolves with what `connect` threw. */
  async disconnect(): Promise<unknown> {
    this.#connection?.lose();
    return this.ended();
  }

  /** Resolves with what `connect` threw; undefined: it ended by itself. */
  async ended(): Promise<unknown> {
    return this.#connection?.ended;
  }

  /** The room that a person opens with the agent, after it has joined. */
  async direct(person: MatrixPerson): Promise<string> {
    const room = await person.createRoom({ invite: [this.userId], direct: true });
    await person.untilJoined(room, this.userId);
    return room;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.disconnect();
  }
}
