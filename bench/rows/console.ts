// Measures the web console in a real browser; packages/console/test/browser/measure.ts drives it.
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import type { Cluster } from "@parley/local";
import { fillSession } from "@parley/testing";
import { z } from "zod";
import { turn, type Gateway } from "../client.ts";
import type { Row } from "../row.ts";

const messages = 10_000;
const program = fileURLToPath(new URL("../../packages/console/test/browser/measure.ts", import.meta.url));
const Rows = z.array(
  z.object({ what: z.string(), measured: z.string(), target: z.string(), isMet: z.boolean().optional() }),
);

const Sessions = z.object({ sessions: z.array(z.object({ sessionId: z.string() })) });

/** Needs Chromium: on the PATH, or named by PARLEY_CHROMIUM. */
export async function consolePages(cluster: Cluster, gateway: Gateway): Promise<Row[]> {
  await turn(gateway, "console-long", "hello");
  const long = await newestSession(gateway);
  await fillSession(cluster.databaseUrl, long, messages);
  await turn(gateway, "console-stream", "hello");
  const empty = await newestSession(gateway);
  const env = {
    ...process.env,
    BENCH_URL: gateway.url,
    BENCH_TOKEN: gateway.token,
    BENCH_LONG: long,
    BENCH_EMPTY: empty,
  };
  const child = spawn(process.execPath, ["--conditions=@parley/source", program], {
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return Rows.parse(JSON.parse(await text(child.stdout))).map(({ isMet, ...row }) => ({ ...row, isMet }));
}

async function newestSession({ url, token }: Gateway): Promise<string> {
  const answer = await fetch(`${url}/api/sessions?limit=1`, { headers: { authorization: `Bearer ${token}` } });
  const { sessions } = Sessions.parse(await answer.json());
  return sessions[0]?.sessionId ?? "";
}
