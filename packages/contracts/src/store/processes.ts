// Commands that go on in the background, as far as others than their tool-runner have to know of them: that there is one, that its
// end is told to its session once, and that it is lost when its tool-runner is.
import { z } from "zod";
import { request } from "../contract.ts";
import { GrantToken } from "../grants.ts";
import { Secret, SecretHash } from "./calls.ts";
import { Empty } from "./shared.ts";

/** `<random>@<replica>`: the tool-runner's own name for it, never given twice. */
const ProcessId = z.string().min(3).max(300);

/** One life of a tool-runner: `<replica>#<incarnation>`, as it signs its claims. */
const Runner = z.string().min(1).max(300);

/** Characters of a command that are kept to name it by. */
export const processCommandChars = 200;
/** Processes that one call names. */
const maxProcesses = 200;

export const processBegin = request({
  subject: "store.process.begin",
  server: "store",
  clients: ["tool-runner"],
  doc: "Keep that a command goes on in the background. A known id changes nothing. NOT_FOUND: there is no such turn. FORBIDDEN: the grant does not hold.",
  input: z.object({
    /** Of the call that started it: its session is told of the end, with the trust of its turn. */
    grant: GrantToken,
    id: ProcessId,
    runner: Runner,
    /** Whoever presents the secret of this hash later is the runner that has the process. */
    keyHash: SecretHash,
    /** Its beginning. */
    command: z.string().max(processCommandChars),
    /** ISO 8601, UTC. */
    startedAt: z.string(),
    /** Its end is announced. */
    notify: z.boolean(),
  }),
  output: Empty,
});

export const processEnd = request({
  subject: "store.process.end",
  server: "store",
  clients: ["tool-runner"],
  doc: "A background command has ended: its session, or the one above a sub-agent that is done, gets a row in its inbox, unique by the id, unless nobody wants it or the model was told already. NOT_FOUND: there is no such process of this key.",
  input: z.object({
    id: ProcessId,
    key: Secret,
    /** For the model: how it ended, the last of its output, how to read the rest. */
    text: z.string().min(1).max(20_000),
  }),
  output: z.object({ announced: z.boolean() }),
});

export const processTold = request({
  subject: "store.process.told",
  server: "store",
  clients: ["tool-runner"],
  doc: "The end of these is known in their session: it is not announced any more, and an announcement that still waits is taken back. Unknown ids, and those of other sessions or of another key, are passed over.",
  input: z.object({
    /** A call that has shown the model the end of its session's processes; or the runner that has them. */
    by: z.union([z.object({ grant: GrantToken }), z.object({ key: Secret })]),
    ids: z.array(ProcessId).max(maxProcesses),
  }),
  output: Empty,
});

export const processRenew = request({
  subject: "store.process.renew",
  server: "store",
  clients: ["tool-runner"],
  doc: "A tool-runner lives, and its background commands with it. The answer names the other ones that have some, for whoever watches whether they still speak.",
  input: z.object({ runner: Runner, key: Secret }),
  output: z.object({
    others: z.array(
      z.object({
        runner: Runner,
        /** When it was last heard of: ISO 8601, UTC, by the database's clock. */
        seenAt: z.string(),
      }),
    ),
  }),
});

export const processLose = request({
  subject: "store.process.lose",
  server: "store",
  clients: ["tool-runner"],
  doc: "A tool-runner is gone, and its background commands with it: their sessions are told. Nothing happens where it was heard of after `seenAt`.",
  input: z.object({ runner: Runner, seenAt: z.string() }),
  output: z.object({ lost: z.number().int() }),
});

export const processList = request({
  subject: "store.process.list",
  server: "store",
  clients: ["channel-gateway"],
  doc: "The background commands that run in a session and in those of its sub-agents, oldest first.",
  input: z.object({ sessionId: z.uuid() }),
  output: z.object({
    processes: z.array(
      z.object({
        id: ProcessId,
        /** This session, or a sub-agent's. */
        sessionId: z.string(),
        /** The tool-runner that has it. */
        replica: z.string(),
        /** Its beginning. */
        command: z.string(),
        /** ISO 8601, UTC. */
        startedAt: z.string(),
      }),
    ),
  }),
});
