// Tools: selection and execution of calls, isolation and network access of `exec`.
import { z } from "zod";
import { toolExecutions } from "./agent.ts";
import { isolationLevels } from "./isolation.ts";
import { ToolScope } from "./tool-scope.ts";

const SearchSettings = z.strictObject({
  provider: z.enum(["brave", "tavily", "searxng"]),
  /** Name of the environment variable with the provider's key: BRAVE_API_KEY, TAVILY_API_KEY; SearXNG needs none. */
  key_env: z
    .string()
    .regex(/^[A-Z][A-Z0-9_]*$/, "must be the NAME of an environment variable, such as BRAVE_API_KEY")
    .optional(),
  /** URL of the provider: required for SearXNG; default: the provider's public URL. */
  url: z.url({ protocol: /^https?$/ }).optional(),
});
export type SearchSettings = z.infer<typeof SearchSettings>;

const WebSettings = z
  .strictObject({
    /** Hosts, addresses or address ranges (`10.1.0.0/16`) of the private network that pages may be fetched from, on any port. */
    allow_private: z.array(z.string().min(1)).default([]),
    /** Ports that public pages may be fetched from. */
    ports: z.array(z.number().int().min(1).max(65_535)).default([80, 443, 8080, 8443]),
    /** Maximum bytes of one page, after decompression. */
    max_bytes: z.number().int().min(1_024).max(52_428_800).default(5_242_880),
    /** Maximum wall-clock time of one fetch, including redirects. */
    timeout_seconds: z.number().int().min(1).max(120).default(30),
    /** The provider of `web_search`; omitted: the tool does not exist. */
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
/** Excludes variables that every command gets, and variables that change the behaviour of its shell or loader. */
const CommandVariable = VariableName.regex(
  /^(?!(PATH|HOME|LANG|TERM|TMPDIR|USER|PARLEY_CALL|ENV|BASH_.*|LD_.*|NODE_.*|(HTTP|HTTPS|NO)_PROXY|(http|https|no)_proxy)$)/,
  "is reserved for another use in commands",
);

/** Tools for most tasks. */
const alwaysShown =
  "read write edit grep glob exec web_search web_fetch message ask_user memory_search memory_write skill sessions_spawn delegate spawn Agent".split(
    " ",
  );

export const ToolSettings = z
  .strictObject({
    /** Names of the tools the agent has; `*` means all. */
    enabled: ToolScope.default(["*"]),
    /** Names of tools the agent does not have; overrides `enabled`. */
    disabled: ToolScope.default([]),
    /** Above this number of tools the prompt contains only those of `always`; the model finds the others with `tool_search`. 0: never. */
    search_above: z.number().int().min(0).default(16),
    /** Names of tools that the prompt always contains; `*` matches any text: `mcp__github__*`. */
    always: z.array(z.string().min(1)).default(alwaysShown),
    /** `readonly_parallel`: calls that only read run in parallel. Results are in call order in every mode. */
    execution: z.enum(toolExecutions).default("readonly_parallel"),
    /** Maximum concurrent calls of one step. */
    max_parallel: z.number().int().min(1).max(64).default(8),
    /** Maximum characters of one result in the prompt; the middle of a longer one is left out with a notice. 0: only the bus's limit, 240 KB for all results of a step. */
    max_result_chars: z.number().int().min(0).default(60_000),
    /** Maximum concurrent calls of one tool-runner replica. */
    max_concurrent_calls: z.number().int().min(1).max(256).default(16),
    exec: z
      .strictObject({
        /** `auto`: bubblewrap where it works, otherwise `exec` is refused. `container`: the pod is the sandbox. `none`: explicitly no isolation. `off`: no `exec`. */
        isolation: z.enum(["auto", "bubblewrap", "container", "none", "off"]).default("auto"),
        /** Minimum isolation of a command; with less `exec` is refused. `gvisor`: a container whose kernel is gVisor. */
        min_isolation: z.enum(isolationLevels).default("none"),
        /**
         * Public hosts that commands can reach, through a proxy: `registry.npmjs.org`, `*.example.com` (its subdomains), `host:port`; without
         * a port, 80 and 443. Empty: no network. Only bubblewrap can enforce it.
         */
        allow_hosts: z.array(AllowedHost).default([]),
        /** Hosts that commands can also reach at a private address; wildcards are not allowed. */
        allow_private_hosts: z.array(PrivateHost).default([]),
        /** Default wall-clock limit of a foreground command. */
        timeout_seconds: z.number().int().min(1).max(3_600).default(120),
        /** A command that still runs after this time continues in the background, unless later calls of its step wait for it; 0: never. */
        background_after_seconds: z.number().int().min(0).max(600).default(10),
        /** Default and maximum wall-clock limit of a background command. */
        background_timeout_seconds: z.number().int().min(1).max(86_400).default(1_800),
        /** Maximum CPU time of one process of a command, all its threads together; 0: only the wall-clock limit. */
        max_cpu_seconds: z.number().int().min(0).max(86_400).default(0),
        /**
         * CPUs that one command may use, all its processes together; 0.5 is half of one; 0: all. Only control groups can enforce it:
         * `parley doctor` reports where they are missing.
         */
        max_cpus: z.number().min(0).max(1_024).default(0),
        /** Maximum concurrent background commands of one session; 0: none. */
        max_background: z.number().int().min(0).max(64).default(8),
      })
      .prefault({}),
    secrets: z
      .strictObject({
        /** Variables of each command, each with the variable of the tool-runner's environment that contains its value: `NPM_TOKEN = { env = "PARLEY_TOOL_NPM" }`. */
        exec: z.record(CommandVariable, z.strictObject({ env: VariableName })).default({}),
      })
      .prefault({}),
    web: WebSettings,
  })
  .prefault({});
