// A strict fake of a signal-cli daemon and the people whom it reaches. A test sends the same requests to a real daemon; deliveries
// need Signal's servers, so only the fake has them.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createDaemonServer, type DaemonServer } from "./server.ts";
import { SignalState, type Fault, type Group, type Person, type RpcCall, type SentMessage } from "./state.ts";

export type { Fault as SignalFault, SentMessage as SignalMessage };

export interface SignalPeerOptions {
  /** Default: a free port. */
  port?: number;
  /** Started with `-a`: it serves one account and has no list of accounts. Default false. */
  singleAccount?: boolean;
  /** Default false, as in 0.13. */
  numbersEvents?: boolean;
  /** Default 15 s, as the daemon. */
  keepAliveMs?: number;
  /** Receives each event, as the daemon's output does. */
  onReceived?: (line: string) => void;
}

export interface SaidMessage {
  /** Default: Ann. */
  from?: Person;
  group?: Group;
  /** Fields of the data message that replace or extend the usual ones. */
  fields?: Record<string, unknown>;
}

export interface SignalPeer extends AsyncDisposable {
  /** The value for `daemon_url`. */
  readonly url: string;
  readonly port: number;
  readonly number: string;
  readonly ann: Person;
  readonly ben: Person;
  /** A group of both and the account. */
  readonly team: Group;
  /** Sends a message as a person; returns its timestamp. */
  say(text: string, options?: SaidMessage): number;
  /** Sends any other envelope, such as one with a `syncMessage`; returns its timestamp. */
  push(fields: Record<string, unknown>, from?: Person): number;
  /** Stores an attachment that a message can name by its id. */
  addAttachment(content: Buffer): string;
  /** Queues a fault for the next call of `method` (`*`: any method). */
  fail(method: string, fault: Fault): void;
  /** The person deletes their account. */
  unregister(person: Person): void;
  /** From now on the account cannot send to the group. */
  refuse(group: Group, refusal: NonNullable<Group["refusal"]>): void;
  /** The messages that people have seen, in order, including those that were never acknowledged to the sender. */
  readonly sent: readonly SentMessage[];
  readonly typing: SignalState["typing"];
  readonly reactions: SignalState["reactions"];
  readonly calls: readonly RpcCall[];
  /** Messages that the daemon has not fetched from Signal's servers. */
  readonly waiting: number;
  /** Connections that read events. */
  readonly readers: number;
  cutStreams(): void;
  /** Sends any text in the event stream. */
  writeToStreams(text: string): void;
  /** Ends the daemon as a crash does; `restart` starts it on the same port. */
  crash(): Promise<void>;
  restart(): Promise<void>;
  untilSent(count: number): Promise<readonly SentMessage[]>;
  until<Value>(what: string, done: () => Value | null): Promise<Value>;
  close(): Promise<void>;
}

const number = "+15550100000";
const ann: Person = { uuid: "a1111111-1111-4111-8111-111111111111", number: "+15550100001", name: "Ann" };
const ben: Person = { uuid: "b2222222-2222-4222-8222-222222222222", number: "+15550100002", name: "Ben" };
const team: Group = { id: "VGhpcyBpcyBhIGdyb3VwIG9mIDMyIGJ5dGVzISEhISE=", name: "Team", members: [ann.uuid, ben.uuid] };

export async function startSignalPeer(options: SignalPeerOptions = {}): Promise<SignalPeer> {
  const state = new SignalState(number);
  for (const person of [ann, ben]) state.people.set(person.uuid, { ...person });
  state.groups.set(team.id, { ...team });
  const open = async (port: number): Promise<DaemonServer> => {
    const daemon = createDaemonServer(state, {
      isMultiAccount: options.singleAccount !== true,
      numbersEvents: options.numbersEvents === true,
      keepAliveMs: options.keepAliveMs ?? 15_000,
      onReceived: options.onReceived ?? (() => undefined),
    });
    daemon.server.listen(port, "127.0.0.1");
    await once(daemon.server, "listening");
    return daemon;
  };
  let daemon = await open(options.port ?? 0);
  const { port } = daemon.server.address() as AddressInfo;
  const crash = async (): Promise<void> => {
    if (!daemon.server.listening) return;
    const closed = once(daemon.server, "close");
    daemon.server.close();
    daemon.end();
    daemon.server.closeAllConnections();
    await closed;
  };
  const push = (fields: Record<string, unknown>, from: Person = ann, timestamp = state.nextTimestamp()): number => {
    const source = { source: from.number, sourceNumber: from.number, sourceUuid: from.uuid, sourceName: from.name };
    state.waiting.push({ ...source, sourceDevice: 1, timestamp, ...fields });
    state.changed();
    return timestamp;
  };

  const peer: SignalPeer = {
    url: `http://127.0.0.1:${port}`,
    port,
    number,
    ann,
    ben,
    team,
    say: (text, { from = ann, group, fields = {} } = {}) => {
      const timestamp = state.nextTimestamp();
      const groupInfo =
        group === undefined
          ? {}
          : { groupInfo: { groupId: group.id, groupName: group.name, revision: 1, type: "DELIVER" } };
      const message = { timestamp, message: text, expiresInSeconds: 0, viewOnce: false, ...groupInfo, ...fields };
      return push({ dataMessage: message }, from, timestamp);
    },
    push,
    addAttachment: (content) => {
      const id = `attachment-${state.attachments.size + 1}.bin`;
      state.attachments.set(id, content);
      return id;
    },
    fail: (method, fault) => state.addFault(method, fault),
    unregister: ({ uuid }) => {
      const person = state.people.get(uuid);
      if (person !== undefined) person.unregistered = true;
    },
    refuse: ({ id }, refusal) => {
      const group = state.groups.get(id);
      if (group !== undefined) group.refusal = refusal;
    },
    sent: state.sent,
    typing: state.typing,
    reactions: state.reactions,
    calls: state.calls,
    get waiting() {
      return state.waiting.length;
    },
    get readers() {
      return daemon.readers;
    },
    cutStreams: () => daemon.cut(),
    writeToStreams: (text) => daemon.write(text),
    crash,
    restart: async () => {
      daemon = await open(port);
    },
    untilSent: (count) => state.until(`${count} messages`, () => (state.sent.length >= count ? state.sent : null)),
    until: (what, done) => state.until(what, done),
    close: crash,
    [Symbol.asyncDispose]: crash,
  };
  return peer;
}
