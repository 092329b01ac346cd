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
  return new uPlot(
    {
      ...size,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), "UTC"),
      cursor: { y: false },
      scales: { x: { time: true }, y: { range: (_, __, max) => [0, max === 0 ? 1 : max * 1.1] } },
      axes: [axis, { ...axis, size: 64 }],
      series: [
        {},
        ...names.map((label, index) => ({
          label,
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
}
