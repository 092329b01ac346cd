// How well commands can be shut in, from the least on; see docs/isolation.md.

export const isolationLevels = ["none", "container", "gvisor", "bubblewrap"] as const;
export type IsolationLevel = (typeof isolationLevels)[number];
