// Formats the status as a table. Pure.

import { modelTitle } from "@parley/contracts";

import type { ReplicaRow, StatusView } from "../cluster/status.ts";
import type { Paint } from "../io/io.ts";
import { columnsOf, duration, indented, table } from "./format.ts";

/** `maxWidth`: columns of the terminal. */
export function statusText(view: StatusView, paint: Paint, maxWidth = Infinity): string {
  const lines: string[] = [];
  if (!view.reachable) {
    lines.push(paint("red", `not reachable: ${view.problems.join("; ")}`));
    lines.push("State of the local supervisor:");
  } else {
    const { model, queue } = view;
    lines.push(view.healthy ? paint("green", "healthy") : paint("red", `unhealthy: ${view.problems.join("; ")}`));
    lines.push(`url      ${view.urls.join("  ")}  (Parley ${view.version ?? "?"})`);
    lines.push(`model    ${model === null ? "unknown: no agent-core answers" : modelTitle(model)}`);
    if (model?.note !== null && model?.note !== undefined)
      lines.push(...indented("         ", model.note, maxWidth).map((line) => paint("dim", line)));
    const channels = new Set(view.replicas.flatMap(({ details }) => details["channels"] ?? []));
    for (const each of channels) lines.push(`channel  ${String(each)}`);
    if (queue !== null) lines.push(`queue    ${queue.running} running, ${queue.waiting} waiting`);
  }
  const head = ["SERVICE", "REPLICA", "PID", "ROLE", "EPOCH", "READY", "UP", "RSS", "RESTARTS"];
  const rows = [head.map((cell) => paint("dim", cell)), ...view.replicas.map((row) => cells(row, paint))];
  // The name of a replica usually begins with its service.
  const isRedundant = view.replicas.every(({ service, replica }) => replica.startsWith(service));
  const isNarrow =
    isRedundant &&
    table(rows)
      .split("\n")
      .some((line) => columnsOf(line) > maxWidth);
  lines.push("", table(isNarrow ? rows.map((row) => row.slice(1)) : rows, maxWidth));
  return lines.join("\n");
}

function cells(row: ReplicaRow, paint: Paint): string[] {
  const role = row.role === "down" ? paint("red", "down") : row.role === "leader" ? paint("bold", "leader") : row.role;
  return [
    row.service,
    row.replica,
    row.pid === null ? "-" : String(row.pid),
    role,
    row.epoch === null ? "-" : String(row.epoch),
    row.ready ? paint("green", "yes") : paint("red", "no"),
    row.uptimeSeconds === null ? "-" : duration(row.uptimeSeconds),
    row.rssMib === null ? "-" : `${Math.round(row.rssMib)} MiB`,
    row.restarts === null ? "-" : String(row.restarts),
  ];
}
