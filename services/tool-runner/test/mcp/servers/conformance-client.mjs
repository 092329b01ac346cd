// The client that the conformance suite starts: it passes the scenario to the test, which runs the tool-runner's client. Loading that client
// in a process of each scenario would take most of the time.
import { once } from "node:events";
import { request } from "node:http";

const [, , port, url] = process.argv;
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context } = process.env;
const call = request({ host: "127.0.0.1", port, method: "POST" });
call.end(JSON.stringify({ url, scenario, context }));
const [response] = await once(call, "response");
for await (const text of response) process.stderr.write(text);
process.exitCode = response.statusCode === 200 ? 0 : 1;
