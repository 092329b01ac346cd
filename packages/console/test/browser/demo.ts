// A cluster with the traces of a week of use, for screenshots: conversations, a call that waits, jobs, notes, accounts and people.
import { setTimeout } from "node:timers/promises";
import { startScriptedModel, startStrictEndpoint, startTelegramPeer, startTestCluster } from "@parley/testing";
import type { Cleanup, TestCluster } from "@parley/testing";

/** The messages of the demonstration and what the model does with each. */
const scripts: Readonly<Record<string, string>> = {
  "Which of our backups are older than two days? Fix the rotation script if it is the cause.": [
    "think: List the folder first. A rotation that compares names instead of times keeps the wrong files.",
    "say: I look at the folder and the script.",
    'tool: exec {"command":"mkdir -p backups && cd backups && touch a-0412.tar.zst a-0413.tar.zst && ls -l | tail -n 2"}',
    'tool: write {"path":"rotate.sh","content":"#!/bin/sh\\nkeep=3\\nls backups | sort | head -n -$keep | xargs -r rm\\n"}',
    "then",
    'tool: edit {"path":"rotate.sh","old_string":"ls backups | sort","new_string":"ls -t backups"}',
    'tool: exec {"command":"sh rotate.sh; echo rotated; exit 3"}',
    "then",
    "say: Two archives were too old. The cause was the **order**: the script sorted by *name*.",
    "say: ",
    "say: | archive | age | state |",
    "say: |---|---|---|",
    "say: | `a-0412.tar.zst` | 4 d | removed |",
    "say: | `a-0413.tar.zst` | 3 d | removed |",
    "say: ",
    "say: ```sh",
    "say: #!/bin/sh",
    "say: # The newest first, so that the rest can go.",
    "say: keep=3",
    'say: ls -t backups | tail -n +$((keep + 1)) | while read -r name; do rm "backups/$name"; done',
    "say: ```",
    "say: ",
    "say: The next run is tonight at 02:00. I can watch it.",
  ].join("\n"),
  "Publish the release notes on the web site.":
    'say: The notes are ready. Publishing needs your consent.\ntool: write {"path":"public/release.md","content":"# 0.2\\n\\n- Web console\\n"}\nthen\nsay: Published.',
  "Compare the two offers for the new servers.":
    'say: Two readers look at one offer each.\ntool: sessions_spawn {"prompt":"Read offers/north.md and list price, warranty and open points.","description":"Offer of North"}\ntool: sessions_spawn {"prompt":"Read offers/south.md and list price, warranty and open points.","description":"Offer of South"}\nthen\nsay: North costs **12 % less**; South has five years of warranty instead of three.',
  "Read offers/north.md and list price, warranty and open points.":
    "say: 41,200 in all, three years of warranty. Open: delivery.",
  "Read offers/south.md and list price, warranty and open points.":
    "say: 46,900 in all, five years of warranty. Open: nothing.",
  "Plan a dinner for six on Friday.":
    'tool: ask_user {"question":"Does anybody eat no meat?","options":["Everybody eats everything","Two vegetarians","Ask me later"]}\nthen\nsay: Noted.',
  "What is on my calendar tomorrow?":
    "say: Three things: the dentist at **9:00**, lunch with Ada, and the release call at 16:00.",
  "Summarise the thread about the new office lease.":
    "say: The landlord offers **five years** with a break after three. Open: who pays for the wiring, and the parking spaces.",
};

const settings = (telegramUrl: string) => `
[session]
policy = "per_conversation"
[permissions]
ask = ["write(public/*)"]
[channels.telegram.main]
token_env = "PARLEY_CHANNEL_TELEGRAM"
api_root = "${telegramUrl}"
owners = ["42"]
[channels.irc.team]
host = "127.0.0.1"
port = 9
tls = false
nick = "parley"
owners = ["account:ada"]
groups = ["#team"]
`;

export interface Demo {
  cluster: TestCluster;
  sessions: { main: string; waiting: string; asking: string; agents: string };
  turn: string;
}

/** Starts the cluster and fills it. */
export async function startDemo(cleanup: Cleanup): Promise<Demo> {
  const telegram = await startTelegramPeer();
  cleanup.add(() => telegram.close());
  const model = await startScriptedModel({ scripts });
  cleanup.add(() => model.stop());
  const strict = await startStrictEndpoint(model.url);
  cleanup.add(() => strict.stop());
  const cluster = await startTestCluster(cleanup, {
    processes: [],
    replicas: { "channel-gateway": 2 },
    settings: settings(telegram.url),
    env: {
      "channel-gateway": { PARLEY_CHANNEL_TELEGRAM: telegram.token },
      "agent-core": { ANTHROPIC_API_KEY: "sk-ant-demo", ANTHROPIC_BASE_URL: strict.url },
    },
  });
  const api = async <T>(path: string, body?: object): Promise<T> => {
    const response = await fetch(`${cluster.httpUrl}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${cluster.token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as T;
    if (!response.ok) throw new Error(`${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const hasEnded = async (sessionId: string) => {
    const { session } = await api<{ session: { messageCount: number; runningTurnId: string | null; queued: number } }>(
      `/api/sessions/${sessionId}`,
    );
    return session.messageCount > 1 && session.runningTurnId === null && session.queued === 0;
  };
  const ask = async (conversation: string, text: string, wait: boolean) => {
    const route = `http:default:${conversation}`;
    const opened = await api<{ session: { sessionId: string } }>("/api/sessions", { action: "new", route });
    const { sessionId } = opened.session;
    await api("/api/messages", { session: sessionId, text });
    if (wait) while (!(await hasEnded(sessionId))) await setTimeout(200);
    return sessionId;
  };
  const named = (beginning: string) => Object.keys(scripts).find((text) => text.startsWith(beginning)) ?? "";
  await ask("lease", named("Summarise"), true);
  await ask("calendar", named("What is on"), true);
  const agents = await ask("offers", named("Compare"), true);
  const main = await ask("backups", named("Which of"), true);
  const waiting = await ask("release", named("Publish"), false);
  const asking = await ask("dinner", named("Plan a"), false);
  telegram.say("What is on my calendar tomorrow?");
  telegram.say("Hello, is this the agent of Ada?", { from: 77 });
  await telegram.untilSent(2);
  const put = (path: string, content: string) => api("/api/documents/put", { path, content });
  await put("AGENTS.md", "# Rules\n\n- Be brief.\n- Ask before anything is published.\n");
  await put("AGENTS.md", "# Rules\n\n- Be brief, and say what you did.\n- Ask before anything is published.\n");
  await put("memory/people.md", "# People\n\n- Ada leads the project and prefers mail in the morning.\n");
  const job = (name: string, schedule: string, prompt: string) => api("/api/schedules", { name, schedule, prompt });
  await job("Morning briefing", "cron 0 7 * * 1-5", "Weather, calendar and open approvals, in five lines.");
  await job("Watch the backups", "every 6h", "Check that the newest backup is younger than a day.");
  const { messages } = await api<{ messages: { turnId: string }[] }>(`/api/sessions/${main}/messages`);
  return { cluster, sessions: { main, waiting, asking, agents }, turn: messages[0]?.turnId ?? "" };
}
