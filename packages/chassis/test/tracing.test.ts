// Tracing in a process: the meaning of the variables, export to a collector over HTTP, and operation without one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createServer, type AddressInfo } from "node:net";
import { once } from "node:events";
import { before, after, describe, test } from "node:test";
import { promisify } from "node:util";
import * as published from "@opentelemetry/semantic-conventions/incubating";
import { activeTrace, ConfigError, createLogger, genAi, genAiOperation, inSpan, readBaseConfig } from "@parley/chassis";
import { WireError } from "@parley/contracts";
import { startOtlpCollector, type OtlpCollector } from "@parley/testing";
import { spanFields, startTracing, type Tracing } from "../src/tracing.ts";

const config = (env: Record<string, string>) =>
  readBaseConfig({ PARLEY_LOG_LEVEL: "silent", PARLEY_REPLICA: "store-1", ...env }, "store");
const tracingOf = (env: Record<string, string>) => config(env).tracing;
const endpoint = "http://127.0.0.1:4318";

describe("OpenTelemetry's variables", () => {
  test("traces nothing without a collector, and excludes content by default", () => {
    assert.equal(tracingOf({}), null);
    assert.equal(tracingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: "" }), null);
    assert.equal(tracingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "true" }), null);
    assert.equal(tracingOf({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: "none" }), null);
    assert.equal(tracingOf({ OTEL_TRACES_EXPORTER: "otlp" })?.protocol, "http/protobuf");
    assert.equal(tracingOf({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: endpoint })?.captureContent, false);
  });

  test("uses the configured sampler", () => {
    const samplerOf = (name: string, ratio: string) =>
      tracingOf({ OTEL_TRACES_EXPORTER: "otlp", OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: ratio })?.sampler;
    assert.deepEqual(samplerOf("parentbased_traceidratio", "0.1"), {
      root: "traceidratio",
      ratio: 0.1,
      parentBased: true,
    });
    assert.deepEqual(samplerOf("always_off", ""), { root: "always_off", ratio: 1, parentBased: false });
  });

  test("refuses unsupported values by name", () => {
    const refused = (env: Record<string, string>, name: RegExp) =>
      assert.throws(
        () => config(env),
        (error) => error instanceof ConfigError && name.test(error.message),
      );
    refused({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" }, /OTEL_EXPORTER_OTLP_PROTOCOL/);
    refused({ OTEL_TRACES_SAMPLER: "jaeger_remote" }, /OTEL_TRACES_SAMPLER/);
    refused({ OTEL_EXPORTER_OTLP_ENDPOINT: "collector" }, /OTEL_EXPORTER_OTLP_ENDPOINT/);
  });
});

test("uses the attributes of OpenTelemetry's conventions for generative AI", () => {
  const names = new Set<unknown>(Object.values(published));
  for (const name of [...Object.values(genAi), ...Object.values(genAiOperation)]) assert.ok(names.has(name), name);
});

test("never loads the SDK without a collector, and creates no spans", async () => {
  const script = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load: (url, context, next) => (loaded.push(url), next(url, context)) });
    const { activeTrace, inSpan, readBaseConfig } = await import("@parley/chassis");
    const { startTracing } = await import(${JSON.stringify(new URL("../src/tracing.ts", import.meta.url).href)});
    await startTracing(readBaseConfig(process.env, "store"));
    const inside = await inSpan("work", {}, async () => activeTrace());
    console.log(JSON.stringify({ inside, sdk: loaded.filter((url) => url.includes("sdk-trace")).length }));`;
  const run = async (env: Record<string, string>) => {
    const child = await promisify(execFile)(
      process.execPath,
      ["--conditions=@parley/source", "--input-type=module", "--eval", script],
      { cwd: import.meta.dirname, env },
    );
    return JSON.parse(child.stdout) as { inside: string | null; sdk: number };
  };
  assert.deepEqual(await run({}), { inside: null, sdk: 0 });
  const on = await run({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint });
  assert.match(on.inside ?? "", /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  assert.ok(on.sdk > 0);
});

describe("with a collector", () => {
  let collector: OtlpCollector;
  let tracing: Tracing;
  // The exporter reads its address from the environment, as it does in a service.
  before(async () => {
    collector = await startOtlpCollector();
    process.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url;
    process.env["OTEL_RESOURCE_ATTRIBUTES"] = "deployment.environment.name=test";
    tracing = await startTracing(
      config({
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_BSP_SCHEDULE_DELAY: "20",
      }),
    );
  });
  after(async () => {
    await tracing.flush(2_000);
    await collector.close();
    delete process.env["OTEL_EXPORTER_OTLP_ENDPOINT"];
    delete process.env["OTEL_RESOURCE_ATTRIBUTES"];
  });

  test("accepts a parent span in text form, and links a joining span", async () => {
    const first = await inSpan("first", { kind: "consumer" }, async () => activeTrace());
    const other = await inSpan("other", { parent: null }, async () => activeTrace());
    await inSpan("second", { parent: first, links: [other, null] }, async (span) => span.setAttribute("n", 2));
    const [one, two, three] = await Promise.all(
      ["first", "second", "other"].map((name) => collector.span((span) => span.name === name)),
    );
    assert.equal(one?.parentSpanId, undefined);
    assert.equal(one?.kind, "consumer");
    assert.equal(one?.service, "store");
    assert.equal(two?.traceId, one?.traceId);
    assert.equal(two?.parentSpanId, one?.spanId);
    assert.equal(two?.attributes["n"], 2);
    assert.deepEqual(
      two?.links.map(({ spanId }) => spanId),
      [three?.spanId],
    );
    assert.notEqual(three?.traceId, one?.traceId);
  });

  test("records the type of a failure but not its text", async () => {
    const refusal = new WireError("FENCED", "secret words");
    await assert.rejects(
      inSpan("refused", {}, async () => Promise.reject(refusal)),
      refusal,
    );
    const span = await collector.span(({ name }) => name === "refused");
    assert.equal(span.failed, true);
    assert.equal(span.attributes["error.type"], "FENCED");
    assert.ok(!collector.bodies.join("").includes("secret words"));
  });

  test("adds the span to a log line", async () => {
    const lines: string[] = [];
    const log = createLogger({
      service: "store",
      replica: "store-1",
      level: "info",
      fields: spanFields,
      write: (line) => lines.push(line),
    });
    const inside = await inSpan("logging", {}, async () => {
      log.info("inside");
      return activeTrace();
    });
    log.info("outside");
    const [first, second] = lines.map((line) => JSON.parse(line) as Record<string, string>);
    assert.equal(`00-${first?.["trace_id"]}-${first?.["span_id"]}-01`, inside);
    assert.equal(second?.["trace_id"], undefined);
  });
});

test("is not delayed by a collector that accepts connections and never replies", async () => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  const { port } = silent.address() as AddressInfo;
  const script = `
    const { inSpan, readBaseConfig } = await import("@parley/chassis");
    const { startTracing } = await import(${JSON.stringify(new URL("../src/tracing.ts", import.meta.url).href)});
    const tracing = await startTracing(readBaseConfig(process.env, "store"));
    for (let n = 0; n < 10_000; n++) await inSpan("work", {}, async () => n);
    const startedAt = performance.now();
    await tracing.flush(200);
    console.log(JSON.stringify({ flushedMs: performance.now() - startedAt }));
    process.exit(0);`;
  const child = await promisify(execFile)(
    process.execPath,
    ["--conditions=@parley/source", "--input-type=module", "--eval", script],
    {
      cwd: import.meta.dirname,
      env: {
        OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
        OTEL_BSP_SCHEDULE_DELAY: "1",
        // The export itself never ends.
        OTEL_EXPORTER_OTLP_TIMEOUT: "3600000",
        OTEL_BSP_EXPORT_TIMEOUT: "3600000",
      },
    },
  );
  silent.close();
  const last = child.stdout.trim().split("\n").at(-1) ?? "";
  const { flushedMs } = JSON.parse(last) as { flushedMs: number };
  assert.ok(flushedMs >= 190, `${flushedMs}`);
});
