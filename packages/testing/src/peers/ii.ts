// A real IRC user: `ii` from its Debian package. It keeps a folder for each conversation. A line written to `in` is sent;
// `out` contains the conversation.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianBinary, sharedCacheDir } from "@parley/local";
import { untilValue } from "../until.ts";
import { withParentDeathSignal } from "./parent-death-signal.ts";

export interface IiOptions {
  port: number;
  nick: string;
  /** Channels that are joined before `startIi` resolves. */
  channels?: readonly string[];
}

export interface IiLine {
  /** Empty for lines without a sender, such as a join. */
  nick: string;
  text: string;
}

export interface Ii extends AsyncDisposable {
  readonly nick: string;
  /** Sends a line to a channel or a nick. */
  say(target: string, text: string): Promise<void>;
  /** Sends a raw command, such as `/j #other`. */
  command(text: string): Promise<void>;
  /** All lines of a channel or a nick so far, including our own. */
  lines(target: string): IiLine[];
  /** Resolves with the lines of a conversation once `done` accepts them. */
  until(target: string, done: (lines: readonly IiLine[]) => boolean): Promise<IiLine[]>;
  /** Resolves once somebody has sent a line that matches. */
  hear(target: string, pattern: RegExp): Promise<IiLine>;
  quit(): Promise<void>;
}

const lookEveryMs = 20;

export async function startIi({ port, nick, channels = [] }: IiOptions): Promise<Ii> {
  const { path } = await debianBinary("ii", "ii", sharedCacheDir);
  const home = realpathSync(mkdtempSync(join(tmpdir(), "parley-ii-")));
  const server = join(home, "127.0.0.1");
  const [program, args] = withParentDeathSignal(path, ["-s", "127.0.0.1", "-p", String(port), "-n", nick, "-i", home]);
  const child = spawn(program, args, { stdio: "ignore" });
  const exited = once(child, "exit");

  const folderOf = (target: string): string => join(server, target.toLowerCase());
  const read = (target: string): string => {
    const file = join(target === "" ? server : folderOf(target), "out");
    return existsSync(file) ? readFileSync(file, "utf8") : "";
  };
  // A line without its end is still being written.
  const lines = (target: string): IiLine[] => read(target).split("\n").slice(0, -1).flatMap(lineOf);

  /** Resolves once `done` is not null. Looks again and again: a recursive watch misses files in a folder that appears just then. */
  const untilChange = <Value>(what: string, done: () => Value | null): Promise<Value> =>
    untilValue(
      done,
      (look) => {
        const looking = setInterval(look, lookEveryMs);
        return () => clearInterval(looking);
      },
      () => `${what} at ${nick}; saw:\n${read("")}`,
    );

  const command = async (text: string): Promise<void> => appendFile(join(server, "in"), `${text}\n`);
  const quit = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await exited;
    }
    rmSync(home, { recursive: true, force: true });
  };

  try {
    await untilChange("the server's greeting", () =>
      /Welcome|End of M(?:essage of the day|OTD)|MOTD/i.test(read("")) ? true : null,
    );
    for (const channel of channels) {
      await command(`/j ${channel}`);
      await untilChange(`joining ${channel}`, () =>
        existsSync(join(folderOf(channel), "in")) && read(channel) !== "" ? true : null,
      );
    }
  } catch (error) {
    await quit();
    throw error;
  }
  return {
    nick,
    say: async (target, text) => {
      if (!existsSync(join(folderOf(target), "in"))) {
        // The first line opens a conversation with a nick.
        await command(`/j ${target} ${text}`);
        return;
      }
      await appendFile(join(folderOf(target), "in"), `${text}\n`);
    },
    command,
    lines,
    until: (target, done) =>
      untilChange(`lines of ${target}`, () => {
        const now = lines(target);
        return done(now) ? now : null;
      }),
    hear: (target, pattern) =>
      untilChange(
        `${target} to say ${pattern}`,
        () => lines(target).find((line) => line.nick !== nick && line.nick !== "" && pattern.test(line.text)) ?? null,
      ),
    quit,
    [Symbol.asyncDispose]: quit,
  };
}

/** The format is `<unix seconds> <nick> text`; every other line comes from the server. */
function lineOf(line: string): IiLine[] {
  const [, event] = /^\d+ (-!- .*)$/.exec(line) ?? [];
  if (event !== undefined) return [{ nick: "", text: event }];
  const [, nick, text] = /^\d+ <([^>]*)> (.*)$/.exec(line) ?? [];
  if (nick === undefined || text === undefined) return [];
  return [{ nick, text }];
}
