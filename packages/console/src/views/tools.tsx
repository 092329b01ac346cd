// The agent's tools, and the MCP servers with their switches.
import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { call, type Result } from "../api/http.ts";
import { visible } from "../chat/markdown.ts";
import { modelName } from "../parts/format.ts";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { runAction, toast } from "../parts/toast.tsx";
import { Fact } from "./cluster.tsx";

type Server = Result<"mcpList">["servers"][number];

const everyMs = 6_000;

export function Tools(): JSX.Element {
  const agent = useLoad(() => call<"agentGet">("GET", "/api/agent"), []);
  const servers = useLoad(() => call<"mcpList">("GET", "/api/mcp"), [], everyMs);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Tools and MCP servers</h1>
      </header>
      <WhenLoaded state={agent}>
        {({ tools, toolSummaries, permissionMode, workspace, model }) => (
          <>
            <dl class="facts">
              <Fact name="Model" value={model === null ? "no leader responds" : modelName(model)} />
              <Fact name="Permission mode" value={permissionMode} />
              <Fact name="Isolation of commands" value={workspace ?? "no tool-runner responds"} />
            </dl>
            <section>
              <h2>{tools.length} tools</h2>
              <ul class="tools">
                {tools.map((tool) => (
                  <li key={tool} data-row tabIndex={-1}>
                    <code>{tool}</code>
                    <span class="muted">{visible(toolSummaries[tool] ?? "")}</span>
                  </li>
                ))}
              </ul>
            </section>
          </>
        )}
      </WhenLoaded>
      <section>
        <h2>MCP servers</h2>
        <WhenLoaded state={servers}>
          {(found) =>
            found.servers.length === 0 ? (
              <EmptyState icon="tools" title="No MCP servers">
                <p>
                  Add one below <code>[mcp.servers.&lt;name&gt;]</code> in <code>parley.toml</code>, then restart.
                </p>
              </EmptyState>
            ) : (
              <ul class="cards">
                {found.servers.map((server) => (
                  <ServerCard key={server.server} server={server} changed={servers.reload} />
                ))}
              </ul>
            )
          }
        </WhenLoaded>
      </section>
    </div>
  );
}

function ServerCard({ server, changed }: { server: Server; changed: () => Promise<void> }): JSX.Element {
  const open = useSignal(false);
  const isOn = server.switched?.on !== false;
  const change = async (body: object) => {
    const path = `/api/mcp/${encodeURIComponent(server.server)}`;
    await runAction(() => call<"mcpSwitchServer">("POST", path, { body, key: crypto.randomUUID() }), "Done");
    await changed();
  };
  const { server: name, state, tools, problem } = server;
  return (
    <li class="card" data-row tabIndex={-1}>
      <div class="row">
        <h3>{visible(name)}</h3>
        <span class={state === "ready" ? "tag good" : "tag warn"}>{state}</span>
        <span class="muted">{tools} tools</span>
        <span class="grow" />
        <button type="button" class="button" onClick={() => void change({ action: isOn ? "off" : "on" })}>
          {isOn ? "Switch off" : "Switch on"}
        </button>
        {isOn && (
          <button type="button" class="button" onClick={() => void change({ action: "restart" })}>
            Restart
          </button>
        )}
      </div>
      {problem !== null && <p class="bad">{visible(problem)}</p>}
      {state === "consent" && <Consent name={name} />}
      <button type="button" class="link-button" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
        {open.value ? "Hide the tools" : "Tools"}
      </button>
      {open.value && <ServerTools name={name} change={change} />}
    </li>
  );
}

/** The link is made when the person asks for it: it expires. */
function Consent({ name }: { name: string }): JSX.Element {
  const link = useSignal<string | null>(null);
  const get = () =>
    runAction(async () => {
      const path = `/api/mcp/${encodeURIComponent(name)}/consent`;
      const found = await call<"mcpConsentLink">("POST", path, { body: {} });
      if (found.link === null) toast("No consent is needed any more");
      link.value = found.link !== null && /^https?:\/\//.test(found.link) ? found.link : null;
    });
  return (
    <div class="approval">
      <p>It needs your consent: you sign in at its own page, which sends you back here.</p>
      <div class="row">
        {link.value === null ? (
          <button type="button" class="button primary" onClick={() => void get()}>
            Get the link
          </button>
        ) : (
          <a class="button primary" href={link.value} target="_blank" rel="noopener noreferrer">
            Open {new URL(link.value).host}
          </a>
        )}
      </div>
    </div>
  );
}

function ServerTools({ name, change }: { name: string; change: (body: object) => Promise<void> }): JSX.Element {
  const loaded = useLoad(() => call<"mcpGet">("GET", `/api/mcp/${encodeURIComponent(name)}`), [name]);
  const toggle = async (tool: string, hidden: boolean) => {
    await change({ action: hidden ? "on" : "off", tool });
    await loaded.reload();
  };
  return (
    <WhenLoaded state={loaded}>
      {({ tools }) => (
        <ul class="lines">
          {tools.map(({ tool, summary = "", hidden }) => (
            <li key={tool} class="row">
              <span class="grow">
                <code>{visible(tool)}</code> {hidden && <span class="tag warn">hidden</span>}{" "}
                <span class="muted">{visible(summary)}</span>
              </span>
              <button type="button" class="button" onClick={() => void toggle(tool, hidden)}>
                {hidden ? "Show to the agent" : "Hide from the agent"}
              </button>
            </li>
          ))}
          {tools.length === 0 && <li class="muted">It has not listed its tools yet.</li>}
        </ul>
      )}
    </WhenLoaded>
  );
}
