// Tools: how calls are run, and what stands between `exec` and the machine.
import { z } from "zod";
import { toolExecutions } from "./agent.ts";
import { isolationLevels } from "./isolation.ts";

const SearchSettings = z.strictObject({
  provider: z.enum(["brave", "tavily", "searxng"]),
  /** Name of the environment variable with the provider's key: BRAVE_API_KEY, TAVILY_API_KEY; SearXNG needs none. */
  key_env: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]*$/, "must be the NAME of an environment variable, such as BRAVE_API_KEY")
    .optional(),
  /** Address of the provider: needed for SearXNG, else its public one. */
  url: z.url({ protocol: /^https?$/ }).optional(),
});
export type SearchSettings = z.infer<typeof SearchSettings>;

const WebSettings = z
  .strictObject({
    /** Hosts, addresses or address ranges (`10.1.0.0/16`) of the private network that pages may be fetched from, on any port. */
    allow_private: z.array(z.string().min(1)).default([]),
    /** Ports that public pages may be fetched from. */
    ports: z.array(z.number().int().min(1).max(65_535)).default([80, 443, 8080, 8443]),
    /** Bytes of one page, after decompression. */
    max_bytes: z.number().int().min(1_024).max(52_428_800).default(5_242_880),
    /** Wall time of one fetch, redirects included. */
    timeout_seconds: z.number().int().min(1).max(120).default(30),
    /** Who answers `web_search`; left out: there is no such tool. */
    search: SearchSettings.optional(),
  })
  .prefault({});
export type WebSettings = z.infer<typeof WebSettings>;

const label = "[a-z0-9]([a-z0-9-]*[a-z0-9])?";
const hostName = `(${label}(\\.${label})*|\\[[0-9a-f:.]+\\])`;
const port = "(:[1-9][0-9]{0,4})?";
const PrivateHost = z
  .string()
  .regex(
    new RegExp(`^${hostName}${port}$`, "i"),
    "must be a host without wildcards, such as git.internal or 10.0.0.5:3000",
  );
const AllowedHost = z
  .string()
  .regex(
    new RegExp(`^(\\*\\.)?${hostName}${port}$`, "i"),
    "must be a host, such as registry.npmjs.org, *.example.com or example.com:8443",
  );

const VariableName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the NAME of an environment variable");
/** What commands are given in any case, and what would make their shell or their loader do something else. */
const CommandVariable = VariableName.regex(
  /^(?!(PATH|HOME|LANG|TERM|TMPDIR|USER|PARLEY_CALL|ENV|BASH_.*|LD_.*|NODE_.*|(HTTP|HTTPS|NO)_PROXY|(http|https|no)_proxy)$)/,
  "is a name that commands need for something else",
);

/** What nearly every piece of work needs, and what says how the work is going. */
const alwaysShown =
  "read write edit apply_patch grep glob ls exec process web_search web_fetch message ask_user sleep todo memory_search memory_get memory_write sessions_spawn delegate spawn Agent".split(
    " ",
  );

export const ToolSettings = z
  .strictObject({
    /** Names of the tools the agent has; `*` stands for all. */
    enabled: z.array(z.string()).default(["*"]),
    /** Names of tools the agent does not have, whatever `enabled` says. */
    disabled: z.array(z.string()).default([]),
    /** With more tools than this the model is shown those of `always` in full, and finds the others with `tool_search`. 0 = never. */
    search_above: z.number().int().min(0).default(30),
    /** Names of the tools that are shown in full all the same; `*` in a name stands for any letters: `mcp__github__*`. */
    always: z.array(z.string().min(1)).default(alwaysShown),
    /** `readonly_parallel`: calls that only read run side by side. Results come in call order in every mode. */
    execution: z.enum(toolExecutions).default("readonly_parallel"),
    /** Calls of one step at the same time. */
    max_parallel: z.number().int().min(1).max(64).default(8),
    /** Characters of one result the model is shown; the rest is cut with a notice that says how to read on. 0 = no limit but the bus's. */
    max_result_chars: z.number().int().min(0).default(60_000),
    /** Calls one tool-runner replica works on at the same time. */
    max_concurrent_calls: z.number().int().min(1).max(256).default(16),
    exec: z
      .strictObject({
        /** `auto`: bubblewrap where it works, else `exec` is refused. `container`: the pod is the sandbox. `none`: no isolation, said so. `off`: no `exec`. */
        isolation: z.enum(["auto", "bubblewrap", "container", "none", "off"]).default("auto"),
        /** What a command needs at least; with less `exec` is refused. `gvisor`: a container whose kernel is gVisor. */
        min_isolation: z.enum(isolationLevels).default("none"),
        /**
         * Public hosts that commands reach, through a proxy: `registry.npmjs.org`, `*.example.com` (what is below it), `host:port`; without a
         * port 80 and 443. Empty: no network. Only bubblewrap can hold it.
         */
        allow_hosts: z.array(AllowedHost).default([]),
        /** Hosts that commands reach also at a private address: named literally, never by a wildcard. */
        allow_private_hosts: z.array(PrivateHost).default([]),
        /** Wall time of a command that is waited for, when the call names none. */
        timeout_seconds: z.number().int().min(1).max(3_600).default(120),
        /** A command that is still running after so long goes on in the background; 0 = never. */
        background_after_seconds: z.number().int().min(0).max(600).default(10),
        /** Wall time of a command in the background, when the call names none; also the most a call may ask for. */
        background_timeout_seconds: z.number().int().min(1).max(86_400).default(1_800),
        /** CPU time of one process of a command, all its threads together; 0 = no limit but the wall time. */
        max_cpu_seconds: z.number().int().min(0).max(86_400).default(0),
        /**
         * CPUs that one command may keep busy, all its processes together, 0.5 is half of one; 0 = all there are. Held by control groups only:
         * `parley doctor` says where it is not.
         */
        max_cpus: z.number().min(0).max(1_024).default(0),
        /** Commands of one session in the background at the same time; 0 = none. */
        max_background: z.number().int().min(0).max(64).default(8),
      })
      .prefault({}),
    secrets: z
      .strictObject({
        /** Variables of each command, and the variable of the tool-runner's environment that holds the value: `NPM_TOKEN = { env = "PARLEY_TOOL_NPM" }`. */
        exec: z.record(CommandVariable, z.strictObject({ env: VariableName })).default({}),
      })
      .prefault({}),
    web: WebSettings,
  })
  .prefault({});
