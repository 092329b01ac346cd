// The process that opened the chat and owns the cluster: `npm start`. It sends warnings to show, and learns whether the cluster goes on.

export interface Supervisor {
  /** The cluster goes on after the chat. */
  keepCluster(): void;
  close(): void;
}

/** Null: the chat was opened by itself, and the cluster does not depend on it. */
export function supervisorOf(warn: (text: string) => void): Supervisor | null {
  if (process.send === undefined || !process.connected) return null;
  const onMessage = (message: unknown): void => {
    if (typeof message === "object" && message !== null && "warning" in message) warn(String(message.warning));
  };
  process.on("message", onMessage);
  return {
    keepCluster: () => void process.send?.({ keepCluster: true }),
    close: () => {
      process.off("message", onMessage);
      if (process.connected) process.disconnect();
    },
  };
}
