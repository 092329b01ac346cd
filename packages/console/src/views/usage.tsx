// Tokens, cost and cache hits by day, and by model, session or channel.
import { useSignal, type Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type uPlot from "uplot";
import { call, type Result } from "../api/http.ts";
import { href } from "../app/router.ts";
import { visible } from "../chat/markdown.ts";
import { compact, duration, money } from "../parts/format.ts";
import { EmptyState, WhenLoaded, useLoad } from "../parts/load.tsx";
import { byDay, byGroup, shareOf, totalOf, type DayUsage, type GroupUsage, type UsageRow } from "./usage-rows.ts";
import { Fact } from "./cluster.tsx";

type LatencyRow = Result<"usageGet">["latency"][number];

export function Usage(): JSX.Element {
  const days = useSignal(30);
  const by = useSignal<Grouping>("model");
  const query = { days: days.value, by: by.value };
  const loaded = useLoad(() => call<"usageGet">("GET", "/api/usage", { query }), [days.value, by.value]);
  return (
    <div class="page">
      <header class="page-head">
        <h1>Usage</h1>
        <select
          aria-label="Period"
          value={days.value}
          onChange={(event) => (days.value = Number(event.currentTarget.value))}
        >
          {[1, 7, 30, 90, 365].map((each) => (
            <option key={each} value={each}>
              {each === 1 ? "Today (UTC)" : `${each} days`}
            </option>
          ))}
        </select>
      </header>
      <WhenLoaded state={loaded}>
        {({ rows, latency, groups }) =>
          rows.length === 0 ? (
            <NoUsage />
          ) : (
            <>
              <Report rows={rows} latency={latency} days={days.value} />
              <Groups by={by} groups={byGroup(groups ?? [])} />
            </>
          )
        }
      </WhenLoaded>
    </div>
  );
}

function NoUsage(): JSX.Element {
  return (
    <EmptyState icon="usage" title="No model calls in this period">
      <p>Choose a longer period, or write something in the chat.</p>
    </EmptyState>
  );
}

function Report(props: { rows: readonly UsageRow[]; latency: readonly LatencyRow[]; days: number }): JSX.Element {
  const { rows, latency, days } = props;
  const total = totalOf(rows);
  const series = byDay(rows, days, new Date());
  return (
    <>
      <dl class="facts">
        <Fact name="Cost" value={money(total.cost)} />
        <Fact name="Model calls" value={String(total.calls)} />
        <Fact name="Tokens in" value={compact(total.promptTokens)} />
        <Fact name="Tokens out" value={compact(total.outputTokens)} />
        <Fact name="From the provider's cache" value={percent(shareOf(total))} />
      </dl>
      <Chart
        label="Tokens a day"
        series={series}
        values={[
          ["in", (day) => day.promptTokens],
          ["out", (day) => day.outputTokens],
        ]}
      />
      <Chart
        label="Cost a day, in dollars, where the price is known"
        series={series}
        values={[["cost", (day) => day.cost.micros / 1e6]]}
      />
      <Chart
        label="Share of the prompt from the provider's cache a day, in percent"
        series={series}
        values={[["from the cache", (day) => Math.round((shareOf(day) ?? 0) * 100)]]}
      />
      <Chart
        label="Duration of a model call a day, in seconds"
        series={series}
        values={[
          ["p95", (day) => secondsOn(latency, day, "p95Ms")],
          ["p50", (day) => secondsOn(latency, day, "p50Ms")],
        ]}
      />
      {latency.length > 0 && <Latency rows={latency} />}
    </>
  );
}

const groupings = { model: "By model", session: "By session", channel: "By channel" } as const;
type Grouping = keyof typeof groupings;

function Groups({ by, groups }: { by: Signal<Grouping>; groups: readonly GroupUsage[] }): JSX.Element {
  return (
    <>
      <div class="row">
        <select
          aria-label="Sum"
          value={by.value}
          onChange={(event) => (by.value = event.currentTarget.value as Grouping)}
        >
          {Object.entries(groupings).map(([name, label]) => (
            <option key={name} value={name}>
              {label}
            </option>
          ))}
        </select>
      </div>
      <div class="table-frame" role="region" aria-label={groupings[by.value]} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Calls</th>
              <th>Tokens in</th>
              <th>Cached</th>
              <th>Tokens out</th>
              <th>Cost</th>
              <th>Call, p50</th>
              <th>p95</th>
            </tr>
          </thead>
          <tbody>
            {groups.map(({ name, sessionId, calls, promptTokens, cachedTokens, outputTokens, cost, p50Ms, p95Ms }) => (
              <tr key={sessionId ?? name}>
                <td>{sessionId === null ? visible(name) : <a href={href("chat", sessionId)}>{visible(name)}</a>}</td>
                <td>{calls}</td>
                <td>{compact(promptTokens)}</td>
                <td>{percent(shareOf({ cachedTokens, promptTokens }))}</td>
                <td>{compact(outputTokens)}</td>
                <td>{money(cost)}</td>
                <td>{timeOf(p50Ms)}</td>
                <td>{timeOf(p95Ms)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function secondsOn(latency: readonly LatencyRow[], { day }: DayUsage, field: "p50Ms" | "p95Ms"): number {
  return (latency.find((row) => row.day === day)?.[field] ?? 0) / 1_000;
}

function percent(share: number | null): string {
  return share === null ? "–" : `${Math.round(share * 100)} %`;
}

function timeOf(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}

function Latency({ rows }: { rows: readonly LatencyRow[] }): JSX.Element {
  return (
    <div class="table-frame" role="region" aria-label="Times of model calls" tabIndex={0}>
      <table>
        <thead>
          <tr>
            <th>Day (UTC)</th>
            <th>Call, p50</th>
            <th>p95</th>
            <th>First token, p50</th>
            <th>p95</th>
          </tr>
        </thead>
        <tbody>
          {rows.toReversed().map(({ day, p50Ms, p95Ms, firstTokenP50Ms, firstTokenP95Ms }) => (
            <tr key={day}>
              <td>{day}</td>
              <td>{timeOf(p50Ms)}</td>
              <td>{timeOf(p95Ms)}</td>
              <td>{timeOf(firstTokenP50Ms)}</td>
              <td>{timeOf(firstTokenP95Ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface ChartProps {
  label: string;
  series: readonly DayUsage[];
  values: readonly (readonly [string, (day: DayUsage) => number])[];
}

const heightPx = 170;

function Chart({ label, series, values }: ChartProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    let chart: uPlot | undefined;
    let isCurrent = true;
    const resize = new ResizeObserver(() => chart?.setSize({ width: element.clientWidth, height: heightPx }));
    const draw = async () => {
      const { createChart } = await import("./usage-chart.ts");
      if (!isCurrent) return;
      const data: uPlot.AlignedData = [
        series.map(({ day }) => Date.parse(`${day}T00:00:00Z`) / 1_000),
        ...values.map(([, value]) => series.map(value)),
      ];
      const names = values.map(([name]) => name);
      chart = createChart(element, { width: element.clientWidth, height: heightPx }, names, data);
      resize.observe(element);
    };
    void draw();
    return () => {
      isCurrent = false;
      resize.disconnect();
      chart?.destroy();
    };
  }, [series, values.length]);
  return (
    <figure class="chart">
      <figcaption>{label}</figcaption>
      <div ref={box} role="img" aria-label={label} />
    </figure>
  );
}
