// The documentation site: the pages of docs/, with a menu. Built by `npm run docs`; the gateway serves it below /docs/.

import { readdirSync, readFileSync } from "node:fs";

const page = (text, link) => ({ text, link: `/${link}` });
const docs = new URL("../../../docs/", import.meta.url);
/** A page for each channel, named by its heading. */
const channels = readdirSync(new URL("channels/", docs)).map((file) => {
  const [, title = file] = /^# (.*)$/m.exec(readFileSync(new URL(`channels/${file}`, docs), "utf8")) ?? [];
  return page(title, `channels/${file.replace(/\.md$/, "")}`);
});

const config = {
  title: "Parley",
  description: "An always-on agent that you reach from every channel",
  base: "/docs/",
  // A copy of docs/ that the build makes: its pages find their libraries only below this folder.
  srcDir: "pages",
  // No inline script: the gateway's content security policy allows none.
  appearance: false,
  metaChunk: true,
  // The keys in the button for the search are not part of its label.
  head: [["style", {}, ".DocSearch-Button-Keys { display: none !important }"]],
  transformHtml: (/** @type {string} */ html) => html.replaceAll(/<script id="[^"]*">.*?<\/script>/gs, ""),
  // Links to files of the repository outside of docs/.
  ignoreDeadLinks: [
    /^(?:\.\/)?(?:\.\.\/)+(?!.*\.md$)/,
    /README$|CHANGELOG$|CONTRIBUTING$|SECURITY$/,
    /examples|packages|services|presets|infra|k8s/,
  ],
  // Raw tags in texts, such as <name>, are text.
  markdown: { html: false, attrs: { disable: true } },
  themeConfig: {
    search: { provider: "local" },
    // Voice control needs a label that contains the visible text.
    notFound: { linkLabel: "Take me home" },
    outline: [2, 3],
    sidebar: [
      {
        text: "Begin",
        items: [
          page("Getting started", "getting-started"),
          page("Concepts", "glossary"),
          page("Troubleshooting", "troubleshooting"),
        ],
      },
      {
        text: "Use",
        items: [
          page("Web console", "console"),
          page("Terminal chat", "terminal"),
          { ...page("Channels", "channels"), collapsed: true, items: channels },
          page("Webhooks", "webhooks"),
          page("Permissions and approvals", "permissions"),
          page("Limits of people", "people-limits"),
          page("Memory", "memory"),
          page("Schedules", "schedules"),
          page("Voice", "voice"),
          page("Attachments", "attachments"),
          page("Checkpoints", "checkpoints"),
          page("Background commands", "background"),
        ],
      },
      {
        text: "Extend",
        items: [
          page("Skills", "skills"),
          page("Hooks", "hooks"),
          page("Profiles and sub-agents", "profiles"),
          page("MCP", "mcp"),
          page("Writing a tool", "writing-a-tool"),
          page("Writing a channel", "writing-a-channel"),
          page("OpenAI clients", "openai"),
          page("Claude Agent SDK", "sdk"),
          page("Tool search", "tool-search"),
          page("Evals", "evals"),
          page("The rehearsal model", "rehearsal"),
        ],
      },
      {
        text: "Reference",
        items: [
          page("Configuration", "configuration"),
          page("Settings", "reference/settings"),
          page("Command line", "reference/cli"),
          page("Slash commands", "commands"),
          page("Tools", "tools"),
          page("HTTP API", "reference/http"),
          page("WebSocket and events", "reference/websocket"),
          page("Event formats", "events"),
          page("Metrics", "metrics"),
          page("Bus protocol", "protocol"),
        ],
      },
      {
        text: "Operate",
        items: [
          page("Deploy", "deploy"),
          page("Observability", "observability"),
          page("Performance", "performance"),
          page("Runbooks", "runbooks/README"),
          page("Security", "security"),
          page("API tokens and audit log", "api-tokens"),
          page("Isolation", "isolation"),
          page("Taint", "taint"),
          page("Licences", "licenses"),
          page("Architecture", "architecture"),
        ],
      },
    ],
  },
};
// oxlint-disable-next-line import/no-default-export -- VitePress reads it
export default config;
