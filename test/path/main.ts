// npm run trace:files -- [--list]: prints how many source files each kind of request enters, by package; with --list also their names.
import { parseArgs } from "node:util";
import { requests, traceRequests } from "./trace.ts";

const { values } = parseArgs({ options: { list: { type: "boolean" } } });
for (const [name, { files }] of Object.entries(await traceRequests())) {
  const { title, maxFiles } = requests[name as keyof typeof requests];
  const byPackage = Map.groupBy(files, (path) => path.split("/").slice(0, 2).join("/"));
  const counts = [...byPackage].map(([home, paths]) => `${home.split("/")[1]} ${paths.length}`).join(", ");
  console.log(`${title}: ${files.length} files, at most ${maxFiles} (${counts})`);
  if (values.list === true) for (const path of files) console.log(`  ${path}`);
}
