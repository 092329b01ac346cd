// What `npm start` prints when the cluster is ready; pure. Never the token: this output often ends in a log.
import type { Cluster } from "./up.ts";

/** `link`: signs a browser in once; null without one. */
export function introduction(
  { httpUrls, tokenFile, model, home }: Pick<Cluster, "httpUrls" | "tokenFile" | "model" | "home">,
  link: string | null,
): string[] {
  return [
    ...(link === null ? [] : [`open   ${link} (signs in once, within 15 minutes)`]),
    `url    ${httpUrls.join("  ")}`,
    `token  in ${tokenFile}`,
    `model  ${model}`,
    `data   ${home}`,
    "cli    npx parley --help, in the folder of Parley",
  ];
}
