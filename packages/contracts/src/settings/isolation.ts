// Isolation levels of commands, weakest first; see docs/isolation.md.

export const isolationLevels = ["none", "container", "gvisor", "bubblewrap"] as const;
export type IsolationLevel = (typeof isolationLevels)[number];
