// Switches of MCP servers: one row per server, for the whole deployment. Tool-runners follow the rows; the hint only saves time.
import {
  maxHiddenTools,
  mcpSwitched,
  WireError,
  type McpChange,
  type McpOverride,
  type OutputOf,
  type store,
} from "@parley/contracts";
import { singleRow, runOperation } from "../../db/operation.ts";
import type { Handlers } from "../handler.ts";

interface SwitchRow {
  server: string;
  switched_on: boolean;
  hidden: string;
  restarts: number;
  changed_by: string;
  changed_at: string;
}

type Changed = OutputOf<typeof store.mcpSwitch>;
/** The fields that a change can modify. */
type Setting = Pick<McpOverride, "on" | "hidden" | "restarts">;

const columns = "server, switched_on, hidden, restarts, changed_by, changed_at";

function switchOf(row: SwitchRow): McpOverride {
  return {
    server: row.server,
    on: row.switched_on,
    hidden: JSON.parse(row.hidden) as string[],
    restarts: row.restarts,
    by: row.changed_by,
    at: row.changed_at,
  };
}

export const mcpHandlers = {
  async mcpSwitches({ database }) {
    const { rows } = await database.query<SwitchRow>(`SELECT ${columns} FROM parley.mcp_switches ORDER BY server`);
    return { switches: rows.map(switchOf) };
  },

  /** A retry returns the first result and does not undo later changes. */
  async mcpSwitch({ database, bus }, { opId, server, change: wanted, by }) {
    const done = await runOperation<Changed>(
      database,
      { opId, epoch: null },
      {
        name: "mcp_switch",
        async run(client) {
          // Serialize the changes of one server.
          await client.query(
            "INSERT INTO parley.mcp_switches (server, changed_by) VALUES ($1, $2) ON CONFLICT (server) DO NOTHING",
            [server, by],
          );
          const { rows } = await client.query<SwitchRow>(
            `SELECT ${columns} FROM parley.mcp_switches WHERE server = $1 FOR UPDATE`,
            [server],
          );
          const before = switchOf(singleRow(rows));
          const after = afterChange(before, wanted);
          if (typeof after === "string") {
            const result: Changed = { outcome: after, switch: before };
            return { result, memo: result };
          }
          const written = await client.query<SwitchRow>(
            `UPDATE parley.mcp_switches
             SET switched_on = $2, hidden = $3, restarts = $4, changed_by = $5, changed_at = now()
             WHERE server = $1 RETURNING ${columns}`,
            [server, after.on, JSON.stringify(after.hidden), after.restarts, by],
          );
          const result: Changed = { outcome: "done", switch: switchOf(singleRow(written.rows)) };
          return { result, memo: result };
        },
      },
    );
    bus.publish(mcpSwitched, { server });
    return done;
  },
} satisfies Partial<Handlers>;

/** The settings after a change, or why no change is made. Throws TOO_LARGE. Pure. */
function afterChange({ on, hidden, restarts }: Setting, wanted: McpChange): Setting | "same" | "off" {
  switch (wanted.do) {
    case "on":
    case "off":
      return on === (wanted.do === "on") ? "same" : { on: !on, hidden, restarts };
    case "restart":
      return on ? { on, hidden, restarts: restarts + 1 } : "off";
    case "hide":
      if (hidden.includes(wanted.tool)) return "same";
      if (hidden.length >= maxHiddenTools) {
        throw new WireError(
          "TOO_LARGE",
          `${maxHiddenTools} tools of this server are already hidden: list the allowed tools in its \`tools\` in parley.toml`,
        );
      }
      return { on, hidden: [...hidden, wanted.tool].sort(), restarts };
    default:
      return hidden.includes(wanted.tool)
        ? { on, hidden: hidden.filter((tool) => tool !== wanted.tool), restarts }
        : "same";
  }
}
