// Background processes, as far as other services need to know them: their existence, one exit notice per process to its session, and
// their loss together with their tool-runner.
import { z } from "zod";
import { GrantToken } from "../grants.ts";
import { Secret, SecretHash } from "./calls.ts";
import { Empty, storeRequest } from "./shared.ts";

/** `<random>@<replica>`: assigned by the tool-runner, never reused. */
const ProcessId = z.string().min(3).max(300);

/** A process instance of a tool-runner: `<replica>#<incarnation>`, as in its claims. */
const Runner = z.string().min(1).max(300);

/** Maximum characters of a command that are stored for display. */
export const processCommandChars = 200;
/** Maximum processes of one request. */
const maxProcesses = 200;

export const processBegin = storeRequest({
  subject: "store.process.begin",
  clients: ["tool-runner"],
  doc: "Register a background process. A known id changes nothing. NOT_FOUND: there is no such turn. FORBIDDEN: the grant is not valid.",
  input: z.object({
    /** The grant of the call that started it. Its session receives the exit notice, with the trust of its turn. */
    grant: GrantToken,
    id: ProcessId,
    runner: Runner,
    /** Hash of the secret with which the runner later proves that it owns the process. */
    keyHash: SecretHash,
    /** The beginning of the command. */
    command: z.string().max(processCommandChars),
    /** ISO 8601, UTC. */
    startedAt: z.string(),
    /** Whether to send an exit notice. */
    notify: z.boolean(),
  }),
  output: Empty,
});

export const processEnd = storeRequest({
  subject: "store.process.end",
  clients: ["tool-runner"],
  doc: "Record the end of a background process. Its session, or the parent session of a finished sub-agent, gets an inbox row, unique by the id, unless no notice is wanted or the model already received the end. NOT_FOUND: there is no such process with this key.",
  input: z.object({
    id: ProcessId,
    key: Secret,
    /** For the model: how it ended, the end of its output, and how to read the rest. */
    text: z.string().min(1).max(20_000),
  }),
  output: z.object({ announced: z.boolean() }),
});

export const processTold = storeRequest({
  subject: "store.process.told",
  clients: ["tool-runner"],
  doc: "Mark the end of these processes as known in their session: no exit notice is sent, and a queued one is cancelled. Unknown ids, and ids of other sessions or another key, are ignored.",
  input: z.object({
    /** The call whose result reported the end of its session's processes, or the runner that owns them. */
    by: z.union([z.object({ grant: GrantToken }), z.object({ key: Secret })]),
    ids: z.array(ProcessId).max(maxProcesses),
  }),
  output: Empty,
});

export const processRenew = storeRequest({
  subject: "store.process.renew",
  clients: ["tool-runner"],
  doc: "Report that a tool-runner and its background processes are alive. Marks the background processes of `gone` tool-runners as lost and notifies their sessions, unless one reported after its `seenAt`. The reply lists the other tool-runners with background processes, so that the caller can detect silent ones.",
  input: z.object({
    runner: Runner,
    key: Secret,
    /** Omitted: none. */
    gone: z
      .array(z.object({ runner: Runner, seenAt: z.string() }))
      .max(maxProcesses)
      .optional(),
  }),
  output: z.object({
    /** How many processes were marked as lost, by tool-runner. */
    lost: z.array(z.object({ runner: Runner, processes: z.number().int() })),
    others: z.array(
      z.object({
        runner: Runner,
        /** Time of its last report: ISO 8601, UTC, by the database's clock. */
        seenAt: z.string(),
      }),
    ),
  }),
});

export const processList = storeRequest({
  subject: "store.process.list",
  clients: ["channel-gateway"],
  doc: "List the background processes of a session and its sub-agents, oldest first.",
  input: z.object({ sessionId: z.uuid() }),
  output: z.object({
    processes: z.array(
      z.object({
        id: ProcessId,
        /** This session, or a sub-agent's. */
        sessionId: z.string(),
        /** The tool-runner that owns it. */
        replica: z.string(),
        /** The beginning of the command. */
        command: z.string(),
        /** ISO 8601, UTC. */
        startedAt: z.string(),
      }),
    ),
  }),
});
