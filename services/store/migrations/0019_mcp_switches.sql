-- What people have switched of MCP servers while the deployment runs. A server without a row is as the settings have it.

CREATE TABLE parley.mcp_switches (
  -- As the settings name it; one that has left the settings keeps its row for when it comes back.
  server text PRIMARY KEY,
  switched_on boolean NOT NULL DEFAULT true,
  -- JSON: names of the tools that the agent does not have.
  hidden text NOT NULL DEFAULT '[]',
  -- Only ever grows: a tool-runner that has seen fewer starts the server again.
  restarts integer NOT NULL DEFAULT 0,
  changed_by text NOT NULL,
  changed_at timestamptz NOT NULL DEFAULT now()
);
