// How many files a request enters. A limit may only fall: it starts at the measured value until the wanted one is reached (message 60,
// `ls` 85, approved `exec` 95).
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { requests, traceRequests, type Traces } from "./trace.ts";

describe("the files that a request enters", () => {
  let traces: Traces;
  before(async () => {
    traces = await traceRequests();
  });

  for (const [name, { title, maxFiles }] of Object.entries(requests)) {
    test(`are at most ${maxFiles} for ${title}`, () => {
      const { files } = traces[name as keyof Traces];
      assert.ok(files.length <= maxFiles, `${files.length} files:\n${files.join("\n")}`);
      // A trace that sees nothing would satisfy every limit.
      for (const service of ["channel-gateway", "agent-core", "store"]) {
        assert.ok(
          files.some((path) => path.startsWith(`services/${service}/`)),
          `no file of ${service} is counted`,
        );
      }
    });
  }
});
