// Draws a chart; a chunk of its own with the chart library.
import "uplot/dist/uPlot.min.css";
import uPlot from "uplot";

/** Bars over days (UTC). */
export function createChart(
  element: HTMLElement,
  size: { width: number; height: number },
  names: readonly string[],
  data: uPlot.AlignedData,
): uPlot {
  const style = getComputedStyle(element);
  const colours = ["--accent", "--good"].map((name) => style.getPropertyValue(name));
  const [text, line] = [style.color, style.getPropertyValue("--line")];
  const probe = document.createElement("span");
  element.append(probe);
  // Canvas does not know light-dark(): the browser computes the colours.
  const computed = [...colours, line].map((colour) => {
    probe.style.color = colour;
    return getComputedStyle(probe).color;
  });
  probe.remove();
  const grid = { stroke: computed[2] ?? "", width: 1 };
  const axis = { stroke: text, grid, ticks: grid, font: "12px system-ui" };
  const bars = uPlot.paths.bars?.({ size: [0.6, 40] });
  const newest = (data[0]?.length ?? 1) - 1;
  const chart = new uPlot(
    {
      ...size,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "UTC"),
      cursor: { y: false },
      // Without a pointer the legend shows the newest day, not dashes.
      hooks: { setLegend: [(chart) => chart.legend.idx == null && chart.setLegend({ idx: newest }, false)] },
      scales: { x: { time: true }, y: { range: (_, __, max) => [0, max === 0 ? 1 : max * 1.1] } },
      axes: [axis, { ...axis, size: 64 }],
      series: [
        { label: "Day", value: (_, seconds) => dayOf(seconds) },
        ...names.map((label, index) => ({
          label,
          value: (_: uPlot, value: number | null) => (value ?? 0).toLocaleString(),
          stroke: computed[index] ?? text,
          fill: computed[index] ?? text,
          ...(bars === undefined ? {} : { paths: bars }),
          points: { show: false },
        })),
      ],
    },
    data,
    element,
  );
  chart.setLegend({ idx: newest });
  return chart;
}

/** `2026-01-31` of a time in seconds since 1970, UTC. */
function dayOf(seconds: number | null): string {
  return seconds === null ? "–" : new Date(seconds * 1_000).toISOString().slice(0, 10);
}
