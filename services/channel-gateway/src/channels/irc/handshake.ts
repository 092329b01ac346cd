// The start of a connection: capabilities, login, nick. A state machine without a socket: it consumes lines and returns commands.
//
//   negotiating (CAP LS → CAP REQ → [AUTHENTICATE] → CAP END)  →  registered (001 with our nick)
//   433 at any time: the nick is in use, usually by a previous connection that the server has not closed yet. The nick is requested
//   again. When logged in to an account, GHOST is sent to NickServ to end the previous connection. Without a login GHOST would need the
//   password, which must never be sent to a user who has taken the nick NickServ.
import { nickOf, type IrcCommand, type IrcLine } from "./line.ts";

export type Step =
  | { kind: "going"; send: IrcCommand[]; nickTaken?: true }
  | { kind: "registered"; send: IrcCommand[] }
  | { kind: "failed"; reason: string };

export interface HandshakeOptions {
  nick: string;
  password: string | null;
}

const wanted: ReadonlySet<string> = new Set([
  "message-tags",
  "server-time",
  "echo-message",
  "labeled-response",
  "batch",
  "account-tag",
]);
const loginFailed: ReadonlySet<string> = new Set(["902", "904", "905", "906", "908"]);
const nickTaken: ReadonlySet<string> = new Set(["433", "436", "437"]);
/** The maximum length of one AUTHENTICATE parameter. */
const saslPieceLength = 400;

export class Handshake {
  /** The acknowledged capabilities. */
  readonly capabilities = new Set<string>();
  readonly #nick: string;
  readonly #password: string | null;
  readonly #offered = new Set<string>();
  #loggedIn = false;
  #substitute: string | null = null;

  constructor({ nick, password }: HandshakeOptions) {
    this.#nick = nick;
    this.#password = password;
  }

  start(): IrcCommand[] {
    return [
      { command: "CAP", params: ["LS", "302"] },
      { command: "NICK", params: [this.#nick] },
      { command: "USER", params: ["parley", "0", "*", "Parley"] },
    ];
  }

  take(line: IrcLine): Step {
    const { command, params } = line;
    if (command === "CAP") return this.#capabilityLine(params);
    if (command === "AUTHENTICATE" && params[0] === "+") return going(this.#credentials());
    if (command === "903") {
      this.#loggedIn = true;
      return going([capEnd]);
    }
    if (loginFailed.has(command)) {
      return { kind: "failed", reason: `the server refused the login as ${this.#nick}: ${params.at(-1) ?? command}` };
    }
    if (nickTaken.has(command)) return { kind: "going", send: [], nickTaken: true };
    if (command === "432") return { kind: "failed", reason: `the server does not allow the nick ${this.#nick}` };
    if (command === "001") {
      if (this.#substitute === null) return { kind: "registered", send: [] };
      const ghost: IrcCommand = { command: "PRIVMSG", params: ["NickServ", `GHOST ${this.#nick}`] };
      return { kind: "going", send: [ghost], nickTaken: true };
    }
    const renamed = command === "NICK" && nickOf(line.source) === this.#substitute && params[0] === this.#nick;
    return renamed ? { kind: "registered", send: [] } : going([]);
  }

  /** Returns the commands to send after a pause when the nick is in use. */
  askAgain(): IrcCommand[] {
    if (this.#loggedIn && this.#substitute === null) {
      this.#substitute = `${this.#nick.slice(0, 27)}_${Math.floor(Math.random() * 90 + 10)}`;
      return [{ command: "NICK", params: [this.#substitute] }];
    }
    return [{ command: "NICK", params: [this.#nick] }];
  }

  #capabilityLine(params: readonly string[]): Step {
    const kind = params[1]?.toUpperCase();
    const words = (params.at(-1) ?? "").split(" ").filter((word) => word !== "");
    if (kind === "LS") {
      for (const word of words) this.#offered.add(word);
      if (params[2] === "*" && params.length > 3) return going([]);
      const names = [...this.#offered].map((word) => word.split("=", 1)[0] ?? "");
      const sasl = this.#password !== null && this.#offersPlain();
      const requested = [...names.filter((name) => wanted.has(name)), ...(sasl ? ["sasl"] : [])];
      return going([requested.length === 0 ? capEnd : { command: "CAP", params: ["REQ", requested.join(" ")] }]);
    }
    if (kind === "ACK") {
      for (const word of words) this.capabilities.add(word);
      return going([words.includes("sasl") ? { command: "AUTHENTICATE", params: ["PLAIN"] } : capEnd]);
    }
    return going(kind === "NAK" ? [capEnd] : []);
  }

  #offersPlain(): boolean {
    for (const word of this.#offered) {
      const [name, mechanisms] = word.split("=", 2);
      if (name === "sasl") return mechanisms === undefined || mechanisms.split(",").includes("PLAIN");
    }
    return false;
  }

  #credentials(): IrcCommand[] {
    const text = Buffer.from(`\0${this.#nick}\0${this.#password ?? ""}`).toString("base64");
    const pieces: string[] = [];
    for (let from = 0; from < text.length; from += saslPieceLength)
      pieces.push(text.slice(from, from + saslPieceLength));
    // A last piece of full length would announce a further piece.
    if (text.length % saslPieceLength === 0) pieces.push("+");
    return pieces.map((piece) => ({ command: "AUTHENTICATE", params: [piece] }));
  }
}

const capEnd: IrcCommand = { command: "CAP", params: ["END"] };

function going(send: IrcCommand[]): Step {
  return { kind: "going", send };
}
