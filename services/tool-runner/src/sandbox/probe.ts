// Runs bubblewrap once at start, with the real command line. `isolation.ts` decides what follows from the result.
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { bubblewrapArguments, type BubblewrapOptions } from "./bubblewrap.ts";
import { isGvisor, type ProbeResult } from "./isolation.ts";

const probeTimeoutMs = 10_000;
/** Error codes of a missing program: from Node, from the shell. */
const notThere: ReadonlySet<unknown> = new Set(["ENOENT", 127]);

/** Prints only `sandboxed` when the sandbox works: no network device but lo, and a read-only system. */
const trial = [
  "grep -v -e '|' -e ' lo:' /proc/net/dev && echo network",
  "(: > /usr/.parley-probe) 2>/dev/null && echo writable",
  "(: >> /proc/sys/kernel/core_pattern) 2>/dev/null && echo kernel",
  "echo sandboxed",
].join("\n");

/** Arguments placed before the command inside the sandbox, and a shell line that prints what is wrong with them. */
interface Before {
  argv: readonly string[];
  trial: string;
}

export async function probeBubblewrap(
  options: Omit<BubblewrapOptions, "disableUserNamespaces">,
  before: Before = { argv: [], trial: ":" },
): Promise<ProbeResult> {
  if (process.platform !== "linux") return { works: false, reason: "it needs Linux" };
  let reason = "";
  for (const disableUserNamespaces of [true, true, false]) {
    // Only a bubblewrap that cannot disable them runs without; any other failure may be temporary.
    if (!disableUserNamespaces && !/userns|user[_ ]namespace/i.test(reason)) break;
    const [program = "", ...sandbox] = bubblewrapArguments({ ...options, disableUserNamespaces });
    const outcome = await run(program, [...sandbox, ...before.argv, "/bin/sh", "-c", `${before.trial}\n${trial}`]);
    if (outcome === "sandboxed") return { works: true, bwrap: options.bwrap, disableUserNamespaces };
    reason = outcome;
  }
  return { works: false, reason };
}

/** Whether this process runs on gVisor's kernel. */
export async function onGvisor(): Promise<boolean> {
  return isGvisor(await readFile("/proc/version", "utf8").catch(() => ""));
}

/** Resolves with `sandboxed`, or with what is wrong. */
function run(program: string, args: readonly string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(program, args, { timeout: probeTimeoutMs, killSignal: "SIGKILL", env: {} }, (error, stdout, stderr) => {
      const output = stdout.trim();
      if (error === null && output === "sandboxed") resolve("sandboxed");
      else if (error !== null && notThere.has(Reflect.get(error, "code"))) resolve("bwrap is not installed");
      else if (error === null) resolve(`the sandbox is not sealed: ${output.replaceAll("\n", ", ")}`);
      else resolve(stderr.trim().split("\n")[0] || `bwrap ended with ${String(Reflect.get(error, "code"))}`);
    });
  });
}
