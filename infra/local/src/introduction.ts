// What `npm start` prints when the cluster is ready; pure. Never the token: this output often ends in a log.
import type { Cluster } from "./local-cluster.ts";

/** `link`: signs a browser in once; null without one. */
export function introduction(
  { httpUrls, tokenFile, model, home }: Pick<Cluster, "httpUrls" | "tokenFile" | "model" | "home">,
  link: string | null,
): string[] {
  return [
    // The note has a line of its own: the link is nearly as wide as a terminal of 80 columns.
    ...(link === null ? [] : [labelled("open", link), labelled("", "signs a browser in once, within 15 minutes")]),
    labelled("url", httpUrls.join("  ")),
    labelled("token", `in ${tokenFile}`),
    labelled("model", model),
    labelled("data", home),
    labelled("cli", "npx parley --help, in the folder of Parley"),
  ];
}

/** The states in the health report of a replica. The reason of one may contain the separator. */
export function splitStates(text: string): string[] {
  return text === "" ? [] : text.split(/; (?=[\w-]+:[\w-]+ \w)/);
}

/**
 * One line per account and state. `states`: of all replicas, for example `<channel>:<account> connected as @bot`. A replica on standby says
 * nothing of an account that another one has; an account that no replica has yet is connecting.
 */
export function channelLines(states: readonly string[]): string[] {
  const suffix = " standby";
  const taken = new Set(states.filter((each) => !each.endsWith(suffix)).map((each) => each.split(" ", 1)[0]));
  const shown = states.flatMap((each) => {
    if (!each.endsWith(suffix)) return [each];
    const account = each.slice(0, -suffix.length);
    return taken.has(account) ? [] : [`${account} connecting`];
  });
  return [...new Set(shown)].map((each) => labelled("channel", each));
}

/** A warning while accounts are connected and the rehearsal model answers the people who write there; else empty. */
export function rehearsalWarning(model: string, states: readonly string[]): string[] {
  // Webhooks and observers write nothing to people.
  const accounts = new Set(
    states.map((each) => each.split(" ", 1)[0] ?? "").filter((name) => !/^(?:hook|observer):/.test(name)),
  );
  if (!model.startsWith("rehearsal:") || accounts.size === 0) return [];
  return [
    labelled("warning", `people on ${[...accounts].join(", ")} get answers of the rehearsal`),
    labelled("", "model, which understands no language. Set one up: npx parley onboard"),
  ];
}

function labelled(label: string, text: string): string {
  return `${label.padEnd(9)}${text}`;
}
